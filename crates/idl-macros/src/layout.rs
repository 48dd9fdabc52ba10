//! The layout as text: what a review sees when an interface changes; and the names of the methods.

use std::fmt::Write;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use crate::client::is_unit;
use crate::model::{Interface, Method, Parameter, Place, text_of};

/// `NAME_LAYOUT`, `NAME_METHODS`.
pub fn generate(interface: &Interface) -> TokenStream {
    let Interface { visibility, name, .. } = interface;
    let portal = match (interface.is_of_words, interface.has_windows()) {
        (true, _) => "npkix8>ix8",
        (false, true) => "npkox4w>ox5",
        (false, false) => "npkox5>ox5",
    };
    let mut text = format!("interface {name}\ntag {:#x}\nportal {portal}\n", interface.tag);
    for method in &interface.methods {
        describe(&mut text, interface.is_of_words, method);
    }
    let constant = format_ident!("{}_LAYOUT", upper(&name.to_string()));
    let methods = format_ident!("{}_METHODS", upper(&name.to_string()));
    let numbers = interface.methods.iter().map(|Method { number, of, name, .. }| {
        let name = format!("{of}.{name}");
        quote!((#number, #name))
    });
    let docs_of_methods = format!("Numbers and names of the methods of `{name}`.");
    let docs = format!("Where each word and byte of `{name}` travels.");
    quote! {
        #[doc = #docs]
        #visibility const #constant: &str = #text;
        #[doc = #docs_of_methods]
        #visibility const #methods: &[(u64, &str)] = &[#(#numbers),*];
    }
}

fn describe(text: &mut String, is_of_words: bool, method: &Method) {
    let parameters: Vec<String> =
        method.parameters.iter().map(|parameter| format!("{}: {}", parameter.name, text_of(&parameter.ty))).collect();
    let returns = &method.returns;
    let words = text_of(&returns.words);
    let value = match (returns.delegated, is_unit(&returns.words)) {
        (false, _) => words.clone(),
        (true, true) => "Delegated".into(),
        (true, false) => format!("(Delegated, {words})"),
    };
    let error = text_of(&method.error);
    let mut line = |line: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line}");
    };
    let stateful = if method.is_stateful { ", stateful" } else { "" };
    let repeatable = if method.is_repeatable { ", repeatable" } else { stateful };
    line(format!(
        "\n{:#06x} {}({}) -> {value} or {error}{repeatable}",
        method.number,
        method.name,
        parameters.join(", ")
    ));
    let number = if is_of_words { "" } else { ", bits 0-15" };
    line(format!("    call   word 0{number}: {:#06x}", method.number));
    for parameter in &method.parameters {
        let name = &parameter.name;
        match parameter.place {
            Place::Word(word) => line(format!("           word {word}: {name}")),
            Place::Block(first, count) => line(format!("           words {first}-{}: {name}", first + count - 1)),
            Place::Overflow(position) => {
                line(format!("           bytes {}-{}: {name}", position * 8, position * 8 + 7))
            }
            Place::Text(length) | Place::Bytes(length) => {
                let low = 16 * (length + 1);
                line(format!("           word 0, bits {low}-{}: length of {name}; bytes: {name}", low + 15));
            }
            Place::Output(length) => {
                let low = 16 * (length + 1);
                line(format!("           word 0, bits {low}-{}: capacity for {name}", low + 15));
            }
            Place::Delegate => line(format!("           delegated: {name}; word 4: its badge if minted")),
        }
    }
    if let Some(Parameter { name, place, .. }) = method.window() {
        let what = if matches!(place, Place::Output(_)) { "to be written" } else { "to be read" };
        line(format!("           or a window, {what}: word 4: {name}; its length in word 0 is 0"));
    }
    line("    reply  word 0: 0, or why not".into());
    if !is_unit(&returns.words) {
        line(format!("           from word 1 on: {words}"));
    }
    if let Some((parameter, _)) = method.output() {
        let count = if returns.counts_output { "word 1" } else { "capacity" };
        let window = if parameter.is_window { ", or in the window" } else { "" };
        line(format!("           bytes: {} ({count}){window}", parameter.name));
    }
    if returns.delegated {
        line("           delegated: the entry; word 4: its badge if minted".into());
    }
}

/// `FileSystem` to `FILE_SYSTEM`.
fn upper(name: &str) -> String {
    let mut upper = String::new();
    for (position, letter) in name.chars().enumerate() {
        if letter.is_uppercase() && position > 0 {
            upper.push('_');
        }
        upper.extend(letter.to_uppercase());
    }
    upper
}
