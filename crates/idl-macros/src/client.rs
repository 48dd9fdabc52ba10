//! The client stub: parameters into words and bytes, the answer back into a result.

use proc_macro2::TokenStream;
use quote::format_ident;
use syn::Ident;

use crate::hygiene::hygienic as quote;
use crate::model::{ALL_WORDS, Interface, Method, Parameter, Place, docs};

/// `NameClient<T>`.
pub fn generate(interface: &Interface) -> TokenStream {
    let Interface { visibility, name, attributes, .. } = interface;
    let numbers = interface.methods.iter().map(number);
    let client = format_ident!("{name}Client");
    let docs = docs(attributes);
    let write = if interface.is_of_words { method_of_words } else { method };
    let methods = interface.methods.iter().map(write);
    quote! {
        #docs
        ///
        /// The client's side: each method is a call through the transport.
        #[derive(Clone, Copy, Debug)]
        #visibility struct #client<T>(pub T);

        /// The number of each method: bits 0 to 15 of word 0 of its call.
        impl #client<()> {
            #(#numbers)*
        }

        impl<T: ::idl::Transport> #client<T> {
            #(#methods)*
        }
    }
}

/// A constant for the number of a method.
fn number(method: &Method) -> TokenStream {
    let constant = format_ident!("{}", method.name.to_string().to_uppercase());
    let (number, docs) = (method.number, format!("The number of [`{0}`](#method.{0}).", method.name));
    quote! {
        #[doc = #docs]
        pub const #constant: u64 = #number;
    }
}

fn method(method: &Method) -> TokenStream {
    let Method { number, name, parameters, error, returns, attributes, .. } = method;
    let docs = docs(attributes);
    let names: Vec<_> = parameters.iter().map(|parameter| &parameter.name).collect();
    let types = parameters.iter().map(|parameter| {
        let ty = &parameter.ty;
        if parameter.place == Place::Delegate { quote!(::idl::Delegate) } else { quote!(#ty) }
    });
    let value_words = &returns.words;
    let value = if returns.delegated {
        match is_unit(value_words) {
            true => quote!(::idl::Delegated),
            false => quote!((::idl::Delegated, #value_words)),
        }
    } else {
        quote!(#value_words)
    };

    let mut words = vec![quote!(0u64); 5];
    words[0] = quote!(#number);
    for parameter in parameters {
        let (name, ty) = (&parameter.name, &parameter.ty);
        match parameter.place {
            // The window's word, or a length, comes there later.
            _ if parameter.is_window => {}
            Place::Word(word) => words[word] = quote!(<#ty as ::idl::Scalar>::to_word(#name)),
            Place::Text(length) | Place::Bytes(length) => {
                let shift = 16 * (length + 1);
                let first = &words[0];
                words[0] = quote!(#first | (#name.len() as u64) << #shift);
            }
            Place::Output(length) => {
                let shift = 16 * (length + 1);
                let first = &words[0];
                words[0] = quote!(#first | (capacity as u64) << #shift);
            }
            Place::Delegate => words[4] = quote!(#name.badge()),
            Place::Overflow(_) | Place::Block(..) => {}
        }
    }
    let control = match method.delegates() {
        Some(parameter) => {
            let name = &parameter.name;
            quote!(#name.control())
        }
        None => quote!(::idl::abi::Control(0)),
    };

    let receive = returns.delegated.then(|| quote!(self.0.prepare_receive().map_err(::idl::Failure::Transport)?;));
    let again = again(method);
    let call = if let Some(parameter) = method.window() {
        with_window(method, parameter, &words)
    } else if method.uses_area() {
        with_area(method, &words, &control)
    } else {
        quote! {
            let answer = self.0.call([#(#words),*], #control, #again).map_err(::idl::Failure::Transport)?;
        }
    };
    let result = result(method);
    quote! {
        #docs
        #[inline]
        #[allow(clippy::too_many_arguments)]
        pub fn #name(&self, #(#names: #types),*) -> ::core::result::Result<#value, ::idl::Failure<#error>> {
            #receive
            #call
            #result
        }
    }
}

/// A method of an interface of words.
fn method_of_words(method: &Method) -> TokenStream {
    let Method { number, name, parameters, error, returns, attributes, .. } = method;
    let docs = docs(attributes);
    let names = parameters.iter().map(|parameter| &parameter.name);
    let types = parameters.iter().map(|parameter| &parameter.ty);
    let mut words = vec![quote!(0u64); ALL_WORDS];
    words[0] = quote!(#number);
    for Parameter { name, ty, place, .. } in parameters {
        match *place {
            Place::Block(first, count) => {
                (0..count).for_each(|position| words[first + position] = quote!(#name[#position]));
            }
            Place::Word(word) => words[word] = quote!(<#ty as ::idl::Scalar>::to_word(#name)),
            _ => {}
        }
    }
    let again = again(method);
    let (value, limit) = (&returns.words, returns.limit);
    quote! {
        #docs
        #[inline]
        #[allow(clippy::too_many_arguments)]
        pub fn #name(&self, #(#names: #types),*) -> ::core::result::Result<#value, ::idl::Failure<#error>> {
            const { assert!(<#value as ::idl::Returns>::WORDS <= #limit, "too many result words") };
            let answer = self.0.call_all_words([#(#words),*], #again).map_err(::idl::Failure::Transport)?;
            ::idl::answered_words(&answer)
        }
    }
}

/// The effect of a second call.
fn again(method: &Method) -> TokenStream {
    match (method.is_repeatable, method.is_stateful) {
        (true, _) => quote!(::idl::Again::Harmless),
        (_, true) => quote!(::idl::Again::Meaningless),
        _ => quote!(::idl::Again::Harmful),
    }
}

/// The bytes that a method sends: of each parameter its name and its bytes; the statement that makes of further scalars the array `values`, which
/// goes before them; and the lengths of all that cannot be cut.
fn pieces(method: &Method) -> (Vec<(&Ident, TokenStream)>, Option<TokenStream>, Vec<TokenStream>) {
    let overflow = method.overflow();
    let overflowing = method.parameters.iter().filter_map(|parameter| {
        let (name, ty) = (&parameter.name, &parameter.ty);
        match parameter.place {
            Place::Overflow(_) => Some(quote!(<#ty as ::idl::Scalar>::to_word(#name).to_le_bytes())),
            _ => None,
        }
    });
    let values = (overflow > 0).then(|| quote!(let values: [[u8; 8]; #overflow] = [#(#overflowing),*];));
    let inputs = method.inputs().map(|parameter| {
        let name = &parameter.name;
        match parameter.place {
            Place::Text(_) => (name, quote!(#name.as_bytes())),
            _ => (name, quote!(#name)),
        }
    });
    let lengths = method.inputs().filter(|parameter| !parameter.is_window).map(|parameter| {
        let name = &parameter.name;
        quote!(#name.len())
    });
    (inputs.collect(), values, lengths.collect())
}

/// The call of a method that uses the message area.
fn with_area(method: &Method, words: &[TokenStream], control: &TokenStream) -> TokenStream {
    let again = again(method);
    let overflow = method.overflow();
    let (pieces, values, lengths) = pieces(method);
    let pieces = (overflow > 0)
        .then(|| quote!(values.as_flattened()))
        .into_iter()
        .chain(pieces.into_iter().map(|(_, piece)| piece));
    let output = match method.output() {
        Some((parameter, _)) => {
            let name = &parameter.name;
            quote! {
                let capacity = #name.len().min(room);
                let receive = &mut #name[..capacity];
            }
        }
        None => quote! {
            let _ = room;
            let receive: &mut [u8] = &mut [];
        },
    };
    quote! {
        let room = ::idl::room(#overflow, &[#(#lengths),*])?;
        #output
        #values
        let mut answer = ::idl::Answer { words: [#(#words),*], control: #control };
        self.0
            .call_bytes(&mut answer, #again, &[#(#pieces),*], receive)
            .map_err(::idl::Failure::Transport)?;
    }
}

/// The call of a method with a window: whole pages at the start of the buffer are shown, what is before them goes in the message.
fn with_window(method: &Method, window: &Parameter, words: &[TokenStream]) -> TokenStream {
    let again = again(method);
    let buffer = &window.name;
    let (pieces, values, lengths) = pieces(method);
    let (shift, shown, receive, sent, came) = match window.place {
        Place::Output(length) => (
            16 * (length + 1),
            quote!(::idl::Shown::Written(&mut #buffer[..capacity])),
            quote!(&mut #buffer[..capacity]),
            quote!(),
            quote!(answer.words[1] as usize),
        ),
        Place::Bytes(length) => (
            16 * (length + 1),
            quote!(::idl::Shown::Read(&#buffer[..capacity])),
            quote!(&mut []),
            quote!(&#buffer[..capacity]),
            quote!(0),
        ),
        _ => unreachable!("bytes, as the model has seen to"),
    };
    let of_message = pieces.iter().map(|(name, piece)| if *name == buffer { sent.clone() } else { piece.clone() });
    let overflow = method.overflow();
    let first = (overflow > 0).then(|| quote!(values.as_flattened()));
    let of_message = first.iter().cloned().chain(of_message);
    let others = pieces.iter().filter(|(name, _)| *name != buffer).map(|(_, piece)| piece.clone());
    let of_window = first.iter().cloned().chain(others);
    quote! {
        let room = ::idl::room(#overflow, &[#(#lengths),*])?;
        #values
        let words = [#(#words),*];
        let part = ::idl::Part::of(#buffer.as_ptr() as usize, #buffer.len());
        let mut answer = ::idl::Answer { words, control: ::idl::abi::Control(0) };
        let mut capacity = 0;
        let mut came = None;
        if let ::idl::Part::Window(bytes) = part {
            capacity = bytes;
            came = match self.0.call_window(&mut answer, #again, &[#(#of_window),*], &mut #shown) {
                // The server that passed the call on could not do so.
                Ok(()) if answer.words[0] == ::idl::BAD_WINDOW => None,
                Ok(()) => Some(0),
                Err(error) if ::idl::is_of_window(error) => None,
                Err(error) => return Err(::idl::Failure::Transport(error)),
            };
        }
        let came = match came {
            Some(came) => came,
            None => {
                capacity = part.bytes().min(room);
                answer = ::idl::Answer { words, control: ::idl::abi::Control(0) };
                answer.words[0] |= (capacity as u64) << #shift;
                self.0
                    .call_bytes(&mut answer, #again, &[#(#of_message),*], #receive)
                    .map_err(::idl::Failure::Transport)?;
                #came
            }
        };
    }
}

/// The meaning of the answer.
fn result(method: &Method) -> TokenStream {
    let returns = &method.returns;
    let (ty, limit) = (&returns.words, returns.limit);
    let value = quote!(::idl::Returns::get(&answer.words[1..1 + #limit]));
    let bytes = match method.output() {
        // The nucleus did not count the bytes of a window.
        _ if method.window().is_some() => quote! {
            if answer.control.length() != came || answer.words[1] > capacity as u64 {
                return Err(::idl::Failure::Protocol(::idl::Protocol::BadReply));
            }
        },
        Some(_) if returns.counts_output => quote! {
            if answer.control.length() > capacity || answer.words[1] != answer.control.length() as u64 {
                return Err(::idl::Failure::Protocol(::idl::Protocol::BadReply));
            }
        },
        Some(_) => quote! {
            if answer.control.length() != capacity {
                return Err(::idl::Failure::Protocol(::idl::Protocol::BadReply));
            }
        },
        None => quote!(),
    };
    let finish = if returns.delegated {
        let give = if is_unit(ty) {
            quote!({
                let () = value;
                delegated
            })
        } else {
            quote!((delegated, value))
        };
        quote! {
            let delegated = ::idl::delegated(&self.0, &answer)?;
            let value: Option<#ty> = #value;
            match value {
                Some(value) => Ok(#give),
                None => {
                    self.0.discard(delegated);
                    Err(::idl::Failure::Protocol(::idl::Protocol::BadReply))
                }
            }
        }
    } else {
        quote! {
            ::idl::answered(&self.0, &answer)?;
            #bytes
            let value: Option<#ty> = #value;
            value.ok_or(::idl::Failure::Protocol(::idl::Protocol::BadReply))
        }
    };
    quote! {
        const { assert!(<#ty as ::idl::Returns>::WORDS <= #limit, "too many result words") };
        #finish
    }
}

/// Whether a type is `()`.
pub fn is_unit(ty: &syn::Type) -> bool {
    matches!(ty, syn::Type::Tuple(tuple) if tuple.elems.is_empty())
}
