//! The client stub: parameters into words and bytes, the answer back into a result.

use proc_macro2::TokenStream;
use quote::format_ident;

use crate::hygiene::hygienic as quote;
use crate::model::{ALL_WORDS, Interface, Method, Parameter, Place, docs};

/// `NameClient<T>`.
pub fn generate(interface: &Interface) -> TokenStream {
    let Interface { visibility, name, attributes, .. } = interface;
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

        impl<T: ::interface::Transport> #client<T> {
            #(#methods)*
        }
    }
}

fn method(method: &Method) -> TokenStream {
    let Method { number, name, parameters, error, returns, attributes, .. } = method;
    let docs = docs(attributes);
    let names: Vec<_> = parameters.iter().map(|parameter| &parameter.name).collect();
    let types = parameters.iter().map(|parameter| {
        let ty = &parameter.ty;
        if parameter.place == Place::Delegate { quote!(::interface::Delegate) } else { quote!(#ty) }
    });
    let value_words = &returns.words;
    let value = if returns.delegated {
        match is_unit(value_words) {
            true => quote!(::interface::Delegated),
            false => quote!((::interface::Delegated, #value_words)),
        }
    } else {
        quote!(#value_words)
    };

    let mut words = vec![quote!(0u64); 5];
    words[0] = quote!(#number);
    for parameter in parameters {
        let (name, ty) = (&parameter.name, &parameter.ty);
        match parameter.place {
            Place::Word(word) => words[word] = quote!(<#ty as ::interface::Scalar>::to_word(#name)),
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
        None => quote!(::interface::abi::Control(0)),
    };

    let receive =
        returns.delegated.then(|| quote!(self.0.prepare_receive().map_err(::interface::Failure::Transport)?;));
    let again = again(method);
    let call = if method.uses_area() {
        with_area(method, &words, &control)
    } else {
        quote! {
            let answer = self.0.call([#(#words),*], #control, #again).map_err(::interface::Failure::Transport)?;
        }
    };
    let result = result(method);
    quote! {
        #docs
        #[inline]
        #[allow(clippy::too_many_arguments)]
        pub fn #name(&self, #(#names: #types),*) -> ::core::result::Result<#value, ::interface::Failure<#error>> {
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
    for Parameter { name, ty, place } in parameters {
        match *place {
            Place::Block(first, count) => {
                (0..count).for_each(|position| words[first + position] = quote!(#name[#position]));
            }
            Place::Word(word) => words[word] = quote!(<#ty as ::interface::Scalar>::to_word(#name)),
            _ => {}
        }
    }
    let again = again(method);
    let (value, limit) = (&returns.words, returns.limit);
    quote! {
        #docs
        #[inline]
        #[allow(clippy::too_many_arguments)]
        pub fn #name(&self, #(#names: #types),*) -> ::core::result::Result<#value, ::interface::Failure<#error>> {
            const { assert!(<#value as ::interface::Returns>::WORDS <= #limit, "too many result words") };
            let answer = self.0.call_all_words([#(#words),*], #again).map_err(::interface::Failure::Transport)?;
            ::interface::answered_words(&answer)
        }
    }
}

/// What comes of a second call.
fn again(method: &Method) -> TokenStream {
    match (method.is_repeatable, method.is_stateful) {
        (true, _) => quote!(::interface::Again::Harmless),
        (_, true) => quote!(::interface::Again::Meaningless),
        _ => quote!(::interface::Again::Harmful),
    }
}

/// The call of a method that uses the message area.
fn with_area(method: &Method, words: &[TokenStream], control: &TokenStream) -> TokenStream {
    let again = again(method);
    let overflow = method.overflow();
    let overflowing = method.parameters.iter().filter_map(|parameter| {
        let (name, ty) = (&parameter.name, &parameter.ty);
        match parameter.place {
            Place::Overflow(_) => Some(quote!(<#ty as ::interface::Scalar>::to_word(#name).to_le_bytes())),
            _ => None,
        }
    });
    let inputs = method.inputs().map(|parameter| {
        let name = &parameter.name;
        match parameter.place {
            Place::Text(_) => quote!(#name.as_bytes()),
            _ => quote!(#name),
        }
    });
    let lengths = method.inputs().map(|parameter| {
        let name = &parameter.name;
        quote!(#name.len())
    });
    let mut pieces: Vec<TokenStream> = Vec::new();
    let values = (overflow > 0).then(|| {
        pieces.push(quote!(values.as_flattened()));
        quote!(let values: [[u8; 8]; #overflow] = [#(#overflowing),*];)
    });
    pieces.extend(inputs);
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
        let room = ::interface::room(#overflow, &[#(#lengths),*])?;
        #output
        #values
        let mut answer = ::interface::Answer { words: [#(#words),*], control: #control };
        self.0
            .call_bytes(&mut answer, #again, &[#(#pieces),*], receive)
            .map_err(::interface::Failure::Transport)?;
    }
}

/// What the answer means.
fn result(method: &Method) -> TokenStream {
    let returns = &method.returns;
    let (ty, limit) = (&returns.words, returns.limit);
    let value = quote!(::interface::Returns::get(&answer.words[1..1 + #limit]));
    let bytes = match method.output() {
        Some(_) if returns.counts_output => quote! {
            if answer.control.length() > capacity || answer.words[1] != answer.control.length() as u64 {
                return Err(::interface::Failure::Protocol(::interface::Protocol::BadReply));
            }
        },
        Some(_) => quote! {
            if answer.control.length() != capacity {
                return Err(::interface::Failure::Protocol(::interface::Protocol::BadReply));
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
            let delegated = ::interface::delegated(&self.0, &answer)?;
            let value: Option<#ty> = #value;
            match value {
                Some(value) => Ok(#give),
                None => {
                    self.0.discard(delegated);
                    Err(::interface::Failure::Protocol(::interface::Protocol::BadReply))
                }
            }
        }
    } else {
        quote! {
            ::interface::answered(&self.0, &answer)?;
            #bytes
            let value: Option<#ty> = #value;
            value.ok_or(::interface::Failure::Protocol(::interface::Protocol::BadReply))
        }
    };
    quote! {
        const { assert!(<#ty as ::interface::Returns>::WORDS <= #limit, "too many result words") };
        #finish
    }
}

/// Whether a type is `()`.
pub fn is_unit(ty: &syn::Type) -> bool {
    matches!(ty, syn::Type::Tuple(tuple) if tuple.elems.is_empty())
}
