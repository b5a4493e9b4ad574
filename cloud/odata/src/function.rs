//! The functions of the language.

macro_rules! functions {
    ($($name:literal $variant:ident $least:literal..=$most:literal $about:literal,)*) => {
        /// The functions of the language.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Function {
            $(#[doc = $about] $variant,)*
        }

        impl Function {
            /// The function that a request calls so.
            #[must_use]
            pub fn of_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Function::$variant),)*
                    _ => None,
                }
            }

            /// As requests call it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Function::$variant => $name,)*
                }
            }

            /// How many arguments it takes, at least and at most.
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
    "startswith" StartsWith 2..=2 "Whether the first text begins with the second.",
    "endswith" EndsWith 2..=2 "Whether the first text ends with the second.",
    "contains" Contains 2..=2 "Whether the first text has the second in it.",
    "substringof" SubstringOf 2..=2 "Whether the second text has the first in it.",
    "tolower" ToLower 1..=1 "The text in lower case.",
    "toupper" ToUpper 1..=1 "The text in upper case.",
    "trim" Trim 1..=1 "The text without white space around it.",
    "length" Length 1..=1 "How many characters the text has.",
    "indexof" IndexOf 2..=2 "Where the second text begins in the first, from 0; -1 where it does not.",
    "substring" Substring 2..=3 "The text from a place on, and at most so many characters of it.",
    "concat" Concat 2..=2 "Both texts in a row.",
    "replace" Replace 3..=3 "The first text with the third in place of each second.",
    "year" Year 1..=1 "The year of a moment, in UTC.",
    "month" Month 1..=1 "The month, from 1.",
    "day" Day 1..=1 "The day of the month, from 1.",
    "hour" Hour 1..=1 "The hour, from 0.",
    "minute" Minute 1..=1 "The minute, from 0.",
    "second" Second 1..=1 "The second, from 0.",
    "fractionalseconds" FractionalSeconds 1..=1 "What is left of the second.",
    "totaloffsetminutes" TotalOffsetMinutes 1..=1 "The distance to UTC: 0.",
    "totalseconds" TotalSeconds 1..=1 "The seconds of a duration.",
    "date" Date 1..=1 "The day of a moment.",
    "time" Time 1..=1 "The time of day of a moment.",
    "now" Now 0..=0 "The moment of the request.",
    "mindatetime" MinDateTime 0..=0 "The earliest moment.",
    "maxdatetime" MaxDateTime 0..=0 "The latest moment.",
    "round" Round 1..=1 "The nearest whole number.",
    "floor" Floor 1..=1 "The whole number below.",
    "ceiling" Ceiling 1..=1 "The whole number above.",
    "cast" Cast 1..=2 "A value as another type.",
    "isof" IsOf 1..=2 "Whether a value is of a type.",
}
