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
    Contains 2..=2 "Whether the first text contains the second.",
    SubstringOf 2..=2 "Whether the second text contains the first.",
    ToLower 1..=1 "The text in lower case.",
    ToUpper 1..=1 "The text in upper case.",
    Trim 1..=1 "The text without white space around it.",
    Length 1..=1 "The number of characters.",
    IndexOf 2..=2 "The position of the second text in the first, from 0; -1 if the first does not contain it.",
    Substring 2..=3 "A substring from a position, with at most this length.",
    Concat 2..=2 "Both texts concatenated.",
    Replace 3..=3 "The first text, with each occurrence of the second replaced by the third.",
    Year 1..=1 "The year of a time, in UTC.",
    Month 1..=1 "The month, from 1.",
    Day 1..=1 "The day of the month, from 1.",
    Hour 1..=1 "The hour, from 0.",
    Minute 1..=1 "The minute, from 0.",
    Second 1..=1 "The second, from 0.",
    FractionalSeconds 1..=1 "The fraction of the second.",
    TotalOffsetMinutes 1..=1 "The UTC offset: 0.",
    TotalSeconds 1..=1 "The number of seconds in a duration.",
    Date 1..=1 "The date of a time.",
    Time 1..=1 "The time of day, in UTC.",
    Now 0..=0 "The time of the request.",
    MinDateTime 0..=0 "The earliest time.",
    MaxDateTime 0..=0 "The latest time.",
    Round 1..=1 "The nearest whole number.",
    Floor 1..=1 "The number rounded down.",
    Ceiling 1..=1 "The number rounded up.",
    Cast 1..=2 "A value as another type.",
    IsOf 1..=2 "Whether a value is of a type.",
}
