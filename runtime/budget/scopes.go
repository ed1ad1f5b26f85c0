package budget

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"sluice.dev/sluice/platform/storage/postgres"
)

// ScopesAsked knows whether chat asks for scopes: from when every edge knows those of the
// keys that were made before it did, under a configuration that has them.
type ScopesAsked struct {
	DB  postgres.DB
	Now func() time.Time // nil: time.Now

	mu    sync.Mutex
	asked bool
	known bool
	read  time.Time
}

// Get is at most a second behind. While the database is away the last answer holds, and
// until there is one it is yes.
func (s *ScopesAsked) Get(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.Now != nil {
		now = s.Now()
	}
	if s.known && now.Sub(s.read) < planAge {
		return s.asked
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	asked := true
	err := s.DB.QueryRow(ctx, `SELECT asked_at IS NOT NULL AND EXISTS (SELECT FROM scopes WHERE name = 'chat:write' AND offered) FROM chat_scopes`).Scan(&asked)
	switch {
	case err == nil:
		s.asked, s.known, s.read = asked, true, now
	case s.known:
		slog.WarnContext(ctx, "whether chat asks for scopes stays as it was", "cause", err)
		s.read = now
	default:
		return true
	}
	return s.asked
}
