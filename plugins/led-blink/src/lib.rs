//! led-blink
