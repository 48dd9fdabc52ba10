//! The order of lines: keys of `sort`, as POSIX counts fields and characters.

use core::cmp::Ordering;

use alloc::string::String;
use alloc::vec::Vec;

use crate::numbers::Decimal;

/// How two texts are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Manner {
    /// As numbers.
    pub numeric: bool,
    /// The other way round.
    pub reverse: bool,
    /// Capital letters of ASCII like small ones.
    pub fold: bool,
    /// Without blanks in front.
    pub blanks: bool,
}

impl Manner {
    /// Takes an option; false if there is none of this letter.
    pub fn option(&mut self, letter: char) -> bool {
        let flag = match letter {
            'n' => &mut self.numeric,
            'r' => &mut self.reverse,
            'f' => &mut self.fold,
            'b' => &mut self.blanks,
            _ => return false,
        };
        *flag = true;
        true
    }

    fn compare(&self, one: &[u8], other: &[u8]) -> Ordering {
        let order = match self {
            Self { numeric: true, .. } => Decimal::leading(one).compare(&Decimal::leading(other)),
            Self { fold: true, .. } => {
                one.iter().map(u8::to_ascii_uppercase).cmp(other.iter().map(u8::to_ascii_uppercase))
            }
            _ => one.cmp(other),
        };
        if self.reverse { order.reverse() } else { order }
    }
}

/// A place in a line: a field, and a character of it; both count from 1. As the end of a key, character 0 is the field's last one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    field: u64,
    character: u64,
}

/// A key: which part of a line is compared, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    from: Place,
    to: Option<Place>,
    manner: Option<Manner>,
    blanks_before_end: bool,
}

impl Key {
    /// From `FIELD[.CHARACTER][LETTERS][,FIELD[.CHARACTER][LETTERS]]`. `Err` = what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once(',').map_or((text, None), |(from, to)| (from, Some(to)));
        let mut manner = Manner::default();
        let (from, _) = place(from, 1, &mut manner)?;
        let blanks = manner.blanks;
        manner.blanks = false;
        let to = to.map(|to| place(to, 0, &mut manner)).transpose()?;
        let blanks_before_end = manner.blanks;
        manner.blanks = blanks;
        let has_own = manner != Manner::default() || blanks_before_end;
        Ok(Self { from, to: to.map(|(to, _)| to), manner: has_own.then_some(manner), blanks_before_end })
    }

    /// The part of a line.
    fn of<'l>(&self, line: &'l [u8], separator: Option<u8>, manner: Manner) -> &'l [u8] {
        let mut start = skip_fields(line, self.from.field - 1, separator, Behind::Separator);
        if manner.blanks {
            start += blanks(&line[start..]);
        }
        let start = line.len().min(start.saturating_add(bytes(self.from.character - 1)));
        let end = match self.to {
            None => line.len(),
            Some(Place { field, character: 0 }) => skip_fields(line, field, separator, Behind::Field),
            Some(Place { field, character }) => {
                let mut end = skip_fields(line, field - 1, separator, Behind::Separator);
                let takes_blanks = self.blanks_before_end || self.manner.is_none() && manner.blanks;
                if takes_blanks {
                    end += blanks(&line[end..]);
                }
                line.len().min(end.saturating_add(bytes(character)))
            }
        };
        &line[start..end.max(start)]
    }
}

fn bytes(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn place<'t>(text: &'t str, least: u64, manner: &mut Manner) -> Result<(Place, &'t str), String> {
    let number = |digits: &str| digits.parse::<u64>().map_err(|_| alloc::format!("{text} is not a place"));
    let end = text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (digits, letters) = text.split_at(end);
    let (field, character) = digits.split_once('.').map_or((digits, None), |(field, of)| (field, Some(of)));
    let place = Place { field: number(field)?, character: character.map(number).transpose()?.unwrap_or(least) };
    if place.field == 0 || place.character < least {
        return Err(alloc::format!("{text}: fields and characters count from 1"));
    }
    match letters.chars().find(|letter| !manner.option(*letter)) {
        Some(letter) => Err(alloc::format!("{letter} is no way to compare")),
        None => Ok((place, letters)),
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn blanks(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_blank(**byte)).count()
}

/// Where skipping fields ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behind {
    /// At the end of the last one.
    Field,
    /// Where the next one begins.
    Separator,
}

/// Where so many fields end. Without a separator a field begins with the blanks in front of it.
fn skip_fields(line: &[u8], count: u64, separator: Option<u8>, behind: Behind) -> usize {
    let mut at = 0;
    for number in 1..=count {
        if at >= line.len() {
            break;
        }
        match separator {
            Some(separator) => {
                at += line[at..].iter().take_while(|byte| **byte != separator).count();
                if at < line.len() && (number < count || behind == Behind::Separator) {
                    at += 1;
                }
            }
            None => {
                at += blanks(&line[at..]);
                at += line[at..].iter().take_while(|byte| !is_blank(**byte)).count();
            }
        }
    }
    at
}

/// How lines are ordered.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// The keys to compare first; without keys it is the line.
    pub keys: Vec<Key>,
    /// The separator of fields; without it they begin where blanks do.
    pub separator: Option<u8>,
    /// How, unless a key says it.
    pub manner: Manner,
    /// Only what the keys distinguish is different.
    pub only_keys: bool,
}

impl Order {
    /// Which of two lines comes first.
    pub fn compare(&self, one: &[u8], other: &[u8]) -> Ordering {
        let by_keys = self.keys.iter().map(|key| {
            let manner = key.manner.unwrap_or(self.manner);
            manner.compare(key.of(one, self.separator, manner), key.of(other, self.separator, manner))
        });
        let begin = |line| if self.manner.blanks { blanks(line) } else { 0 };
        let first = match by_keys.into_iter().find(|order| order.is_ne()) {
            Some(order) => order,
            None if self.keys.is_empty() => self.manner.compare(&one[begin(one)..], &other[begin(other)..]),
            None => Ordering::Equal,
        };
        if first.is_ne() || self.only_keys {
            return first;
        }
        if self.manner.reverse { other.cmp(one) } else { one.cmp(other) }
    }
}
