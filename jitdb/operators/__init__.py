"""What am I asking? Questions as immutable values: operations, combinators, modifiers, consumers."""
