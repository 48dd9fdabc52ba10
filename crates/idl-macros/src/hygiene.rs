//! How code is generated.

/// `quote!`, with locals of the generated code invisible to the names of parameters and the other way
/// round: a parameter may be called `end` or `words`.
macro_rules! hygienic {
    ($($tokens:tt)*) => { ::quote::quote_spanned!(::proc_macro2::Span::mixed_site() => $($tokens)*) };
}
pub(crate) use hygienic;
