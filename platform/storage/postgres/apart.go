package postgres

import "context"

// Holder is a request that holds a transaction, and so a connection.
type Holder interface {
	// Apart commits what was done so far and gives the connection back, calls call,
	// and goes on in a new transaction. An error means that it cannot go on.
	Apart(ctx context.Context, call func(context.Context)) error
}

// holderKey is under what a context has the Holder.
type holderKey struct{}

// WithHolder returns a context whose request is h.
func WithHolder(ctx context.Context, h Holder) context.Context {
	return context.WithValue(ctx, holderKey{}, h)
}

// Apart calls call, which waits for somebody else's answer, while the request of
// ctx holds no connection. Where none is held it is call alone, and costs nothing.
// An error is not call's: the request cannot go on, and call may not have run.
func Apart(ctx context.Context, call func(context.Context)) error {
	if h, ok := ctx.Value(holderKey{}).(Holder); ok {
		return h.Apart(ctx, call)
	}
	call(ctx)
	return nil
}
