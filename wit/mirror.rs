// Generated types of `wit/` stand again where they are documented for others, or cross a socket: whoever includes this
// file turns one into the other. Both have the same fields or the same variants; what these hold is turned by `into`.
macro_rules! mirror {
    (struct $one:ty, $other:ty { $($field:ident),+ }) => {
        mirror! { one way struct $one, $other { $($field),+ } }
        mirror! { one way struct $other, $one { $($field),+ } }
    };
    (enum $one:ty, $other:ty { $($variant:ident $(($content:ident))?),+ }) => {
        mirror! { one way enum $one, $other { $($variant $(($content))?),+ } }
        mirror! { one way enum $other, $one { $($variant $(($content))?),+ } }
    };
    (one way struct $from:ty, $to:ty { $($field:ident),+ }) => {
        impl From<$from> for $to {
            fn from(value: $from) -> Self {
                Self { $($field: value.$field.into(),)+ }
            }
        }
    };
    (one way enum $from:ty, $to:ty { $($variant:ident $(($content:ident))?),+ }) => {
        impl From<$from> for $to {
            fn from(value: $from) -> Self {
                type Mirrored = $from;
                match value {
                    $(Mirrored::$variant $(($content))? => Self::$variant $(($content.into()))?,)+
                }
            }
        }
    };
}
