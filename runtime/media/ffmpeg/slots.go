package ffmpeg

import (
	"context"

	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/filters/decision"
)

// retryAfter is what a full room says, in seconds (spec, TRANSCODE_001: 30–60 s).
const retryAfter = 30

// Slots bound the conversions that callers wait for: so many run at once, and so
// many more wait in the room.
type Slots struct{ room, running chan struct{} }

// NewSlots returns n slots, and a room in which waiting more find place.
func NewSlots(n, waiting int) *Slots {
	return &Slots{room: make(chan struct{}, n+waiting), running: make(chan struct{}, n)}
}

// Reserve takes a place in the room, which the caller must leave. It fails with
// TRANSCODE_001 when the room is full.
func (s *Slots) Reserve() (leave func(), err error) {
	select {
	case s.room <- struct{}{}:
		return func() { <-s.room }, nil
	default:
		return nil, &controlplane.Error{Code: decision.Transcode001, RetryAfter: retryAfter}
	}
}

// Run waits for a slot and takes it, which the caller, who has a place in the room,
// must leave.
func (s *Slots) Run(ctx context.Context) (leave func(), err error) {
	select {
	case s.running <- struct{}{}:
		return func() { <-s.running }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Enter is Reserve and Run.
func (s *Slots) Enter(ctx context.Context) (leave func(), err error) {
	out, err := s.Reserve()
	if err != nil {
		return nil, err
	}
	done, err := s.Run(ctx)
	if err != nil {
		out()
		return nil, err
	}
	return func() { done(); out() }, nil
}
