package pause

import (
	"context"
	"testing"
	"time"
)

func TestFor(t *testing.T) {
	t.Parallel()
	if !For(t.Context(), time.Nanosecond) {
		t.Error("no context has ended, yet the pause was broken off")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if For(ctx, time.Hour) {
		t.Error("the pause outlived its context")
	}
}
