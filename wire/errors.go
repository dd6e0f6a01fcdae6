package wire

import "fmt"

// DecodeError says why bytes from the network are not a container.
type DecodeError struct {
	// Reason is the row of the verdict table: ReasonMalformed,
	// ReasonSchemeMismatch or ReasonEmptyParticipants.
	Reason Reason
	// Container is the SSZ container, or the part of one, that did not decode.
	Container string
	// Detail says what is wrong with it.
	Detail string
}

// Error returns the text of the error.
func (e *DecodeError) Error() string {
	return fmt.Sprintf("decode %s: %s (%s)", e.Container, e.Detail, e.Reason)
}

// malformed returns a DecodeError for bytes that are no encoding.
func malformed(container, format string, args ...any) *DecodeError {
	return &DecodeError{Reason: ReasonMalformed, Container: container, Detail: fmt.Sprintf(format, args...)}
}
