//! The functions of the language.

macro_rules! functions {
    ($($variant:ident $least:literal..=$most:literal $about:literal,)*) => {
        /// The functions of the language; requests call them by their lower-case names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::EnumString)]
        #[strum(serialize_all = "lowercase")]
        pub enum Function {
            $(#[doc = $about] $variant,)*
        }

        impl Function {
            /// Returns how many arguments it accepts, at least and at most.
            #[must_use]
            pub fn arguments(self) -> std::ops::RangeInclusive<usize> {
                match self {
                    $(Function::$variant => $least..=$most,)*
                }
            }
        }
    };
}

functions! {
    StartsWith 2..=2 "Whether the first text begins with the second.",
    EndsWith 2..=2 "Whether the first text ends with the second.",
    Contains 2..=2 "Whether the first text has the second in it.",
    SubstringOf 2..=2 "Whether the second text has the first in it.",
    ToLower 1..=1 "The text in lower case.",
    ToUpper 1..=1 "The text in upper case.",
    Trim 1..=1 "The text without white space around it.",
    Length 1..=1 "How many characters the text has.",
    IndexOf 2..=2 "Where the second text begins in the first, from 0; -1 where it does not.",
    Substring 2..=3 "The text from a place on, and at most so many characters of it.",
    Concat 2..=2 "Both texts in a row.",
    Replace 3..=3 "The first text with the third in place of each second.",
    Year 1..=1 "The year of a moment, in UTC.",
    Month 1..=1 "The month, from 1.",
    Day 1..=1 "The day of the month, from 1.",
    Hour 1..=1 "The hour, from 0.",
    Minute 1..=1 "The minute, from 0.",
    Second 1..=1 "The second, from 0.",
    FractionalSeconds 1..=1 "What is left of the second.",
    TotalOffsetMinutes 1..=1 "The distance to UTC: 0.",
    TotalSeconds 1..=1 "The seconds of a duration.",
    Date 1..=1 "The day of a moment.",
    Time 1..=1 "The time of day of a moment.",
    Now 0..=0 "The moment of the request.",
    MinDateTime 0..=0 "The earliest moment.",
    MaxDateTime 0..=0 "The latest moment.",
    Round 1..=1 "The nearest whole number.",
    Floor 1..=1 "The whole number below.",
    Ceiling 1..=1 "The whole number above.",
    Cast 1..=2 "A value as another type.",
    IsOf 1..=2 "Whether a value is of a type.",
}
