"""The door for C++: headers, the runtime library, and the engine behind it."""
