//! Checks that the `Path` of a handler takes as many values as its route has `:names`, if its type fixes their number:
//! tuples and plain values do, structs and maps do not. [`crate::plugin!`] checks this while the plugin is compiled.
//!
//! The types of a function's arguments do not occur in the macro, so the compiler infers them from [`arguments`];
//! types with a fixed number have a method `number`. For all others the compiler finds the method of the trait
//! [`UnknownNumber`].

use std::marker::PhantomData;

use crate::handler::Handler;
use crate::{Error, Path};

/// The type of an argument.
pub struct ArgumentType<A>(PhantomData<A>);

/// The argument takes exactly this number of `:names`.
pub struct FixedNumber<const COUNT: usize>;

/// The argument takes any number of `:names`, or a number that is known only at run time.
pub struct AnyNumber;

/// The number of `:names` that an argument, or all of them together, take.
pub trait Number {
    /// `None` if it is not known while the plugin is compiled.
    const COUNT: Option<usize>;
}

impl<const COUNT: usize> Number for FixedNumber<COUNT> {
    const COUNT: Option<usize> = Some(COUNT);
}

impl Number for AnyNumber {
    const COUNT: Option<usize> = None;
}

/// Infers the types of the arguments of `handler`.
pub fn arguments<F: Handler<A>, A: ArgumentTypes>(_handler: F) -> A::Each {
    A::each()
}

/// Returns whether the arguments that take a fixed number of `:names` all take `count`. The function is never called:
/// only its type matters.
pub const fn fits<A, B, C, D, E, F>(_: &impl Fn() -> (A, B, C, D, E, F), count: usize) -> bool
where
    A: Number,
    B: Number,
    C: Number,
    D: Number,
    E: Number,
    F: Number,
{
    let counts = [A::COUNT, B::COUNT, C::COUNT, D::COUNT, E::COUNT, F::COUNT];
    let mut at = 0;
    while at < counts.len() {
        if let Some(other) = counts[at]
            && other != count
        {
            return false;
        }
        at += 1;
    }
    true
}

/// The types of the arguments of a handler.
pub trait ArgumentTypes {
    /// Each type on its own; `()` fills up to six.
    type Each;

    /// Returns each type on its own.
    fn each() -> Self::Each;
}

macro_rules! argument_types {
    ($(($($argument:ident)*) $($none:ty)*;)*) => {
        $(impl<$($argument),*> ArgumentTypes for ($($argument,)*) {
            type Each = ($(ArgumentType<$argument>,)* $(ArgumentType<$none>,)*);

            fn each() -> Self::Each {
                ($(ArgumentType(PhantomData::<$argument>),)* $(ArgumentType(PhantomData::<$none>),)*)
            }
        })*
    };
}

argument_types! {
    () () () () () () ();
    (A) () () () () ();
    (A B) () () () ();
    (A B C) () () ();
    (A B C D) () ();
    (A B C D E) ();
    (A B C D E F);
}

/// Arguments without a fixed number.
pub trait UnknownNumber {
    /// Returns that the number is not fixed.
    fn number(&self) -> AnyNumber {
        AnyNumber
    }
}

impl<A> UnknownNumber for ArgumentType<A> {}

macro_rules! exactly {
    ($($count:literal [$($argument:ident)*] $type:ty;)*) => {
        $(
            impl<$($argument),*> ArgumentType<Path<$type>> {
                /// Returns how many `:names` the argument takes.
                pub fn number(&self) -> FixedNumber<$count> {
                    FixedNumber
                }
            }

            impl<$($argument),*> ArgumentType<Result<Path<$type>, Error>> {
                /// Returns how many `:names` the argument takes.
                pub fn number(&self) -> FixedNumber<$count> {
                    FixedNumber
                }
            }
        )*
    };
}

exactly! {
    1 [] bool; 1 [] char; 1 [] String; 1 [] f32; 1 [] f64;
    1 [] i8; 1 [] i16; 1 [] i32; 1 [] i64; 1 [] i128;
    1 [] u8; 1 [] u16; 1 [] u32; 1 [] u64; 1 [] u128; 1 [] usize; 1 [] isize;
    1 [A] (A,);
    2 [A B] (A, B);
    3 [A B C] (A, B, C);
    4 [A B C D] (A, B, C, D);
    5 [A B C D E] (A, B, C, D, E);
    6 [A B C D E F] (A, B, C, D, E, F);
    7 [A B C D E F G] (A, B, C, D, E, F, G);
    8 [A B C D E F G H] (A, B, C, D, E, F, G, H);
}
