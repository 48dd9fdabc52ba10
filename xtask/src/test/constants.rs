//! Constants of programs that this tool is not linked with, read from their sources: `const NAME: u64 = 5 << 20;`.

use super::parity::root;
use crate::project::read_text;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use syn::{BinOp, Expr, Item, Lit};

/// Constants of some files, by name.
pub struct Constants(BTreeMap<String, Expr>);

impl Constants {
    /// Those of the modules of these files. If several files have a name, that of the first one counts.
    pub fn of_files(files: &[&str]) -> Result<Self> {
        let mut all = Self(BTreeMap::new());
        for file in files {
            all.add(&read_text(&root().join(file))?).with_context(|| format!("{file} is not understood"))?;
        }
        Ok(all)
    }

    fn add(&mut self, source: &str) -> Result<()> {
        for item in syn::parse_file(source)?.items {
            if let Item::Const(constant) = item {
                self.0.entry(constant.ident.to_string()).or_insert(*constant.expr);
            }
        }
        Ok(())
    }

    fn get(&self, name: &str) -> Result<&Expr> {
        self.0.get(name).with_context(|| format!("no constant is called {name}"))
    }

    /// A constant that is a number.
    pub fn number(&self, name: &str) -> Result<u64> {
        self.value(self.get(name)?).with_context(|| format!("the constant {name}"))
    }

    /// A constant that is an array of numbers, or start and end of a range.
    pub fn numbers(&self, name: &str) -> Result<Vec<u64>> {
        match self.get(name)? {
            Expr::Array(array) => array.elems.iter().map(|element| self.value(element)).collect(),
            Expr::Range(range) => [&range.start, &range.end].into_iter().flatten().map(|end| self.value(end)).collect(),
            _ => bail!("{name} is no array and no range"),
        }
    }

    fn value(&self, expression: &Expr) -> Result<u64> {
        match expression {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Int(number) => Ok(number.base10_parse()?),
                _ => bail!("no number"),
            },
            Expr::Paren(inner) => self.value(&inner.expr),
            Expr::Cast(cast) => self.value(&cast.expr),
            Expr::Path(path) => match path.path.segments.last() {
                Some(name) => self.number(&name.ident.to_string()),
                None => bail!("a path without a name"),
            },
            Expr::Binary(both) => {
                let [left, right] = [self.value(&both.left)?, self.value(&both.right)?];
                let result = match both.op {
                    BinOp::Add(_) => left.checked_add(right),
                    BinOp::Sub(_) => left.checked_sub(right),
                    BinOp::Mul(_) => left.checked_mul(right),
                    BinOp::Div(_) => left.checked_div(right),
                    BinOp::Shl(_) => left.checked_shl(right.try_into()?),
                    _ => bail!("an operator that is not known here"),
                };
                result.context("a result that is no u64")
            }
            _ => bail!("an expression that is not known here"),
        }
    }
}

#[test]
fn constants_are_computed() -> Result<()> {
    let mut all = Constants(BTreeMap::new());
    all.add(
        "const A: u64 = 0x1_0000;\npub const B: usize = (super::A as usize / 2 - 1) * 3 + (1 << 4);\n\
         const C: [u16; 3] = [4, 2592, A as u16];\nconst D: Range<usize> = 0..68;\nconst E: &str = \"\";\nconst F: u64 = 1 - 2;\n",
    )?;
    all.add("const A: u64 = 5;\nconst G: u64 = f(1);\n")?;
    assert_eq!(all.number("B")?, (0x8000 - 1) * 3 + 16);
    assert_eq!((all.numbers("C")?, all.numbers("D")?), (vec![4, 2592, 0x1_0000], vec![0, 68]));
    for none in ["E", "F", "G", "H"] {
        assert!(all.number(none).is_err(), "{none}");
    }
    Ok(())
}
