//! `#[interface]`: client stub, server dispatcher and layout text from a trait.
//!
//! The encoding is described in the `idl` crate; here it is turned into code. `model` reads the
//! trait and assigns every parameter its place, `client` and `server` write the two halves, `layout`
//! writes the text that a checked-in golden file holds. All three read the same model, so they cannot
//! disagree.

#![forbid(unsafe_code)]

mod client;
mod hygiene;
mod layout;
mod model;
mod server;

use proc_macro::TokenStream;
use quote::quote;

/// Derives from `trait Name`: `NameServer` (the trait with a badge added to each method, and `dispatch`),
/// `NameClient<T: Transport>` with a constant for each method's number, and the constants `NAME_LAYOUT` and `NAME_METHODS`. The trait itself disappears. `#[repeatable]` on a method
/// says that it does no harm to call it again when a server died in it, `#[stateful]` that it means something of an earlier call,
/// which a server that was started again does not know.
///
/// `#[of(Other)]` says that it is the method of the same place of another interface: it has the number of that one.
///
/// `#[window]` on a parameter of bytes says that they may come as whole pages that the client shows for the length of the call. The
/// client's method is as it would be without; the server's gets an `idl::Input` or `Output`, which copies. Such an interface has portals
/// of the specification `idl::WINDOW_PORTAL`.
///
/// `#[interface(words)]` is an interface of words: its methods pass scalars and `[u64; N]`, and `dispatch` has all words.
#[proc_macro_attribute]
pub fn interface(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let item = syn::parse_macro_input!(item as syn::ItemTrait);
    match model::Interface::read(&arguments.into(), &item) {
        Ok(interface) => {
            let client = client::generate(&interface);
            let server = server::generate(&interface);
            let layout = layout::generate(&interface);
            quote!(#client #server #layout).into()
        }
        Err(error) => error.into_compile_error().into(),
    }
}
