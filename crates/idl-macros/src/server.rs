//! The server's side: the trait to implement, and the dispatcher that checks every word and length
//! before it calls it.

use proc_macro2::TokenStream;
use quote::format_ident;

use crate::client::is_unit;
use crate::hygiene::hygienic as quote;
use crate::model::{Interface, Method, Parameter, Place, docs};

/// `NameServer`.
pub fn generate(interface: &Interface) -> TokenStream {
    let Interface { visibility, name, attributes, tag, .. } = interface;
    let server = format_ident!("{name}Server");
    let docs = docs(attributes);
    let declarations = interface.methods.iter().map(declaration);
    if interface.is_of_words {
        let arms = interface.methods.iter().map(arm_of_words);
        return quote! {
            #docs
            ///
            /// The server's side: each method gets the badge of the call entry that was used.
            #visibility trait #server {
                #(#declarations)*

                /// Handles one call: checks it, runs the method, gives the answer. Never panics by itself.
                #[inline]
                fn dispatch(&self, badge: u64, words: &::idl::AllWords) -> ::idl::AllWords {
                    match words[0] {
                        #(#arms)*
                        number => ::idl::no_method(number, #tag).words(),
                    }
                }
            }
        };
    }
    let has_windows = interface.has_windows();
    let arms = interface.methods.iter().map(|method| arm(method, has_windows));
    quote! {
        #docs
        ///
        /// The server's side: each method gets the badge of the call entry that was used.
        #visibility trait #server {
            #(#declarations)*

            /// Handles one call: checks it, runs the method, makes the reply. Never panics by itself.
            #[inline]
            fn dispatch(&self, request: &mut ::idl::Request<'_>) -> ::idl::Reply {
                let word0 = request.words[0];
                match word0 & 0xffff {
                    #(#arms)*
                    _ => ::idl::no_method(word0, #tag).reply(),
                }
            }
        }
    }
}

fn declaration(method: &Method) -> TokenStream {
    let Method { name, parameters, error, returns, attributes, .. } = method;
    let docs = docs(attributes);
    let names = parameters.iter().map(|parameter| &parameter.name);
    let types = parameters.iter().map(|parameter| {
        let ty = &parameter.ty;
        match parameter.place {
            Place::Delegate => quote!(::idl::Delegated),
            Place::Bytes(_) if parameter.is_window => quote!(::idl::Input<'_>),
            Place::Output(_) if parameter.is_window => quote!(::idl::Output<'_>),
            _ => quote!(#ty),
        }
    });
    let words = &returns.words;
    let value = match (returns.delegated, is_unit(words)) {
        (false, _) => quote!(#words),
        (true, true) => quote!(::idl::Delegate),
        (true, false) => quote!((::idl::Delegate, #words)),
    };
    quote! {
        #docs
        #[allow(clippy::too_many_arguments)]
        fn #name(&self, badge: u64, #(#names: #types),*) -> ::core::result::Result<#value, #error>;
    }
}

fn arm(method: &Method, has_windows: bool) -> TokenStream {
    let Method { number, name, parameters, .. } = method;
    let names: Vec<_> = parameters.iter().map(|parameter| &parameter.name).collect();
    let window = has_windows.then(|| window_of(method));
    let check = method.uses_area().then(|| check(method));
    let scalars = parameters.iter().filter_map(scalar);
    let slices = method.uses_area().then(|| slices(method));
    let entry = method.delegates().map(|parameter| {
        let name = &parameter.name;
        quote! {
            let Some(#name) = request.delegated.take() else {
                return ::idl::Protocol::NoDelegation.reply();
            };
        }
    });
    let lend = method.uses_area().then(|| quote!(request.lent.set((end + capacity) as u64);));
    let back = method.uses_area().then(|| quote!(request.lent.set(0);));
    let reply = reply(method);
    quote! {
        #number => {
            #window
            #check
            #(#scalars)*
            #slices
            #entry
            #lend
            let result = self.#name(request.badge, #(#names),*);
            #back
            match result {
                Ok(value) => { #reply }
                Err(error) => ::idl::refused(error),
            }
        }
    }
}

/// Whether the client may open a window, and this one.
fn window_of(method: &Method) -> TokenStream {
    let Some(parameter) = method.window() else {
        return quote! {
            if request.window.is_some() {
                return ::idl::Protocol::BadWindow.reply();
            }
        };
    };
    let length = length_of(parameter.place);
    // Pages that are gone show memory of the server there if it may write them: it may hold what another client was to get.
    let is_written = matches!(parameter.place, Place::Output(_));
    quote! {
        let window = request.window;
        if let Some(shown) = window {
            if #length != 0 {
                return ::idl::Protocol::BadLength.reply();
            }
            if shown.is_writable() != #is_written {
                return ::idl::Protocol::BadWindow.reply();
            }
        }
    }
}

/// Whether the lengths in the first word fit the message.
fn check(method: &Method) -> TokenStream {
    let overflow = method.overflow();
    let lengths = method.inputs().map(|parameter| length_of(parameter.place));
    let inputs = method.inputs().count();
    let capacity = method.output().map_or(quote!(0), |(_, length)| length_at(length));
    quote! {
        let capacity: usize = #capacity;
        let lengths: [usize; #inputs] = [#(#lengths),*];
        let Some(end) = ::idl::check(request.length, #overflow, &lengths, capacity) else {
            return ::idl::Protocol::BadLength.reply();
        };
    }
}

/// A parameter that is a word.
fn scalar(parameter: &Parameter) -> Option<TokenStream> {
    let (name, ty) = (&parameter.name, &parameter.ty);
    let word = match parameter.place {
        Place::Word(word) => quote!(request.words[#word]),
        Place::Overflow(position) => quote!(::idl::overflow(request.area, #position)),
        _ => return None,
    };
    Some(quote! {
        let Some(#name) = <#ty as ::idl::Scalar>::from_word(#word) else {
            return ::idl::Protocol::BadValue.reply();
        };
    })
}

/// The parameters that are bytes of the message area, one after the other.
fn slices(method: &Method) -> TokenStream {
    let start = method.overflow() * 8;
    let cuts = method.inputs().enumerate().map(|(position, parameter)| cut(position, parameter));
    let output = method.output().map(|(parameter, _)| {
        let name = &parameter.name;
        if parameter.is_window {
            return quote! {
                let #name = match window {
                    Some(window) => ::idl::Output::Window(window),
                    None => ::idl::Output::Message(&mut rest[..capacity]),
                };
            };
        }
        // Without a count all bytes are returned: clear them, so that none of an earlier call is.
        let clear = (!method.returns.counts_output).then(|| quote!(rest[..capacity].fill(0);));
        quote! {
            #clear
            let #name = &mut rest[..capacity];
        }
    });
    let unused = method.output().is_none().then(|| quote!(let _ = rest;));
    quote! {
        let rest = &mut request.area[#start..];
        #(#cuts)*
        #output
        #unused
    }
}

/// The input with this position, cut off from what is left.
fn cut(position: usize, parameter: &Parameter) -> TokenStream {
    let name = &parameter.name;
    let cut = quote!(let (#name, rest) = rest.split_at_mut(lengths[#position]););
    let shown = match parameter.place {
        Place::Text(_) => quote! {
            let Ok(#name) = ::core::str::from_utf8(#name) else {
                return ::idl::Protocol::BadText.reply();
            };
        },
        _ if parameter.is_window => quote! {
            let #name = match window {
                Some(window) => ::idl::Input::Window(window),
                None => ::idl::Input::Message(#name),
            };
        },
        _ => quote!(let #name: &[u8] = #name;),
    };
    quote!(#cut #shown)
}

/// The same for an interface of words.
fn arm_of_words(method: &Method) -> TokenStream {
    let Method { number, name, parameters, .. } = method;
    let names = parameters.iter().map(|parameter| &parameter.name);
    let values = parameters.iter().filter_map(|Parameter { name, ty, place, .. }| match *place {
        Place::Block(first, count) => {
            let words = (first..first + count).map(|word| quote!(words[#word]));
            Some(quote!(let #name: #ty = [#(#words),*];))
        }
        Place::Word(word) => Some(quote! {
            let Some(#name) = <#ty as ::idl::Scalar>::from_word(words[#word]) else {
                return ::idl::Protocol::BadValue.words();
            };
        }),
        _ => None,
    });
    quote! {
        #number => {
            #(#values)*
            ::idl::answer_words(self.#name(badge, #(#names),*))
        }
    }
}

fn length_of(place: Place) -> TokenStream {
    match place {
        Place::Text(length) | Place::Bytes(length) | Place::Output(length) => length_at(length),
        _ => quote!(0),
    }
}

/// The length with this position in the first word.
fn length_at(position: usize) -> TokenStream {
    let shift = 16 * (position + 1);
    quote!((word0 >> #shift & 0xffff) as usize)
}

/// The reply to a method that did well.
fn reply(method: &Method) -> TokenStream {
    let returns = &method.returns;
    let limit = returns.limit;
    let (take, control) = match (returns.delegated, is_unit(&returns.words)) {
        (false, _) => (quote!(), quote!(::idl::abi::Control(0))),
        (true, true) => (
            quote! {
                let delegate: ::idl::Delegate = value;
                let value = ();
                words[4] = delegate.badge();
            },
            quote!(delegate.control()),
        ),
        (true, false) => (
            quote! {
                let (delegate, value): (::idl::Delegate, _) = value;
                words[4] = delegate.badge();
            },
            quote!(delegate.control()),
        ),
    };
    let bytes = method.output().map(|(parameter, _)| {
        if parameter.is_window {
            return quote! {
                let count = words[1] as usize;
                if count > window.map_or(capacity, |window| window.len()) {
                    return ::idl::Protocol::BadReply.reply();
                }
                let count = if window.is_some() { 0 } else { count };
                if end > 0 && count > 0 {
                    request.area.copy_within(end..end + count, 0);
                }
                let control = ::idl::abi::Control(control.0 | count as u64);
            };
        }
        let count = match returns.counts_output {
            true => quote!(words[1] as usize),
            false => quote!(capacity),
        };
        quote! {
            let count = #count;
            if count > capacity {
                return ::idl::Protocol::BadReply.reply();
            }
            if end > 0 {
                request.area.copy_within(end..end + count, 0);
            }
            let control = ::idl::abi::Control(control.0 | count as u64);
        }
    });
    quote! {
        let mut words = [0u64; 5];
        #take
        ::idl::Returns::put(value, &mut words[1..1 + #limit]);
        let control = #control;
        #bytes
        ::idl::Reply { words, control }
    }
}
