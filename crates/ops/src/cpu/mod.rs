//! The CPU: the specification of every primitive.
