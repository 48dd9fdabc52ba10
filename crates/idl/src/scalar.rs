//! Values that travel in words.

/// A value that is one word.
pub trait Scalar: Sized {
    /// The word.
    fn to_word(self) -> u64;
    /// The value, if the word is in its range.
    fn from_word(word: u64) -> Option<Self>;
}

macro_rules! scalars {
    ($($ty:ty)*) => { $(
        impl Scalar for $ty {
            #[inline]
            fn to_word(self) -> u64 {
                self as u64
            }
            #[inline]
            fn from_word(word: u64) -> Option<Self> {
                word.try_into().ok()
            }
        }
    )* };
}

scalars!(u8 u16 u32 u64 usize);

impl Scalar for bool {
    #[inline]
    fn to_word(self) -> u64 {
        self.into()
    }
    #[inline]
    fn from_word(word: u64) -> Option<Self> {
        match word {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

/// Makes a fieldless enum a [`Scalar`]: `scalar_enum! { pub enum Kind { 0 File "a file" … } }`.
#[macro_export]
macro_rules! scalar_enum {
    ($(#[$attribute:meta])* $visibility:vis enum $name:ident { $($number:literal $variant:ident $text:literal)* }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u64)]
        $visibility enum $name { $(#[doc = $text] $variant = $number,)* }

        impl $crate::Scalar for $name {
            fn to_word(self) -> u64 {
                self as u64
            }
            fn from_word(word: u64) -> Option<Self> {
                match word { $($number => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

/// A result that travels in words.
pub trait Returns: Sized {
    /// How many words: at most 4, of an interface of words 8.
    const WORDS: usize;
    /// Writes the words; `words` has room for them.
    fn put(self, words: &mut [u64]);
    /// Reads them; `None` if a word is out of its range.
    fn get(words: &[u64]) -> Option<Self>;
}

impl<S: Scalar> Returns for S {
    const WORDS: usize = 1;
    #[inline]
    fn put(self, words: &mut [u64]) {
        words[0] = self.to_word();
    }
    #[inline]
    fn get(words: &[u64]) -> Option<Self> {
        S::from_word(*words.first()?)
    }
}

impl<const N: usize> Returns for [u64; N] {
    const WORDS: usize = N;
    #[inline]
    fn put(self, words: &mut [u64]) {
        words[..N].copy_from_slice(&self);
    }
    #[inline]
    fn get(words: &[u64]) -> Option<Self> {
        words.first_chunk().copied()
    }
}

macro_rules! tuples {
    ($(($($name:ident $position:tt),*) = $count:literal;)*) => { $(
        impl<$($name: Scalar),*> Returns for ($($name,)*) {
            const WORDS: usize = $count;
            #[inline]
            fn put(self, _words: &mut [u64]) {
                $(_words[$position] = self.$position.to_word();)*
            }
            #[inline]
            fn get(_words: &[u64]) -> Option<Self> {
                Some(($($name::from_word(*_words.get($position)?)?,)*))
            }
        }
    )* };
}

tuples! {
    () = 0;
    (A 0) = 1;
    (A 0, B 1) = 2;
    (A 0, B 1, C 2) = 3;
    (A 0, B 1, C 2, D 3) = 4;
}

/// Makes a struct of up to four [`Scalar`]s a [`Returns`], in the order of its fields.
#[macro_export]
macro_rules! returns_struct {
    ($(#[$attribute:meta])* $visibility:vis struct $name:ident { $($(#[$field_attribute:meta])* pub $field:ident: $ty:ty,)* }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        $visibility struct $name { $($(#[$field_attribute])* pub $field: $ty,)* }

        impl $crate::Returns for $name {
            const WORDS: usize = [$(stringify!($field)),*].len();
            fn put(self, words: &mut [u64]) {
                let values = [$($crate::Scalar::to_word(self.$field)),*];
                words[..values.len()].copy_from_slice(&values);
            }
            fn get(words: &[u64]) -> Option<Self> {
                let mut words = words.iter();
                Some(Self { $($field: $crate::Scalar::from_word(*words.next()?)?,)* })
            }
        }
    };
}
