//! The errors of capabilities: each has a text for people, and a kind that a handler can match on.

/// Defines the error of one capability. Each row has a variant, the variant of `wit/` that it comes from, and the
/// status with which [`crate::Error`] answers it.
macro_rules! capability_error {
    (
        $(#[$doc:meta])*
        $wit:ty {
            $($(#[$variant_doc:meta])* $variant:ident from $of_wit:ident answers $status:ident,)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Error {
            $($(#[$variant_doc])* $variant(String),)+
        }

        impl std::fmt::Display for Error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$variant(text))|+ => f.write_str(text),
                }
            }
        }

        impl std::error::Error for Error {}

        impl From<$wit> for Error {
            fn from(error: $wit) -> Self {
                type OfWit = $wit;
                match error {
                    $(OfWit::$of_wit(text) => Self::$variant(text),)+
                }
            }
        }

        impl From<Error> for crate::Error {
            fn from(error: Error) -> Self {
                match error {
                    $(Error::$variant(text) => Self::$status(text),)+
                }
            }
        }
    };
}

pub(crate) use capability_error;
