package budget

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"sluice.dev/sluice/platform/clock"
	"sluice.dev/sluice/platform/storage/postgres"
)

// ScopesAsked knows whether chat asks for scopes: from when every edge knows those of the
// keys that were made before it did, under a configuration that has them.
type ScopesAsked struct {
	DB  postgres.DB
	Now func() time.Time // nil: time.Now

	mu      sync.Mutex
	asked   bool
	known   bool
	reading bool // somebody reads it anew
	read    time.Time
}

// scopesTimeout bounds a look at the database.
const scopesTimeout = 5 * time.Second

// Get is at most a second behind. While the database is away or slow the last answer holds, for
// which nobody waits but one request in a second; until there is an answer it is yes.
func (s *ScopesAsked) Get(ctx context.Context) bool {
	s.mu.Lock()
	if s.known && (s.reading || s.now().Sub(s.read) < planAge) {
		defer s.mu.Unlock()
		return s.asked
	}
	s.reading = true
	s.mu.Unlock()
	asked, err := s.look(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading, s.read = false, s.now()
	switch {
	case err == nil:
		s.asked, s.known = asked, true
	case s.known:
		slog.WarnContext(ctx, "whether chat asks for scopes stays as it was", "cause", err)
	default:
		return true
	}
	return s.asked
}

// look reads it, whether or not the client stays: others get the answer too.
func (s *ScopesAsked) look(ctx context.Context) (asked bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), scopesTimeout)
	defer cancel()
	err = s.DB.QueryRow(ctx, `SELECT asked_at IS NOT NULL AND EXISTS (SELECT FROM scopes WHERE name = 'chat:write' AND offered) FROM chat_scopes`).Scan(&asked)
	return asked, err
}

func (s *ScopesAsked) now() time.Time { return clock.Or(s.Now) }
