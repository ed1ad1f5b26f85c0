package certificates

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/mholt/acmez/v3"
	"github.com/mholt/acmez/v3/acme"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/platform/limits/coalesce"
	"sluice.dev/sluice/platform/process/pause"
)

// solvers are the one way of proof that a certificate is asked for by.
func (m *Manager) solvers(challenge string) map[string]acmez.Solver {
	if challenge == config.DNS01 {
		return map[string]acmez.Solver{challenge: m.Hook}
	}
	return map[string]acmez.Solver{challenge: stored{m.Store}}
}

// stored is a solver that puts answers where every replica finds them. An edge asks
// when an authority does, so there is nothing to wait for.
type stored struct{ Store }

func challengeID(c acme.Challenge) string {
	if c.Type == acme.ChallengeTypeTLSALPN01 {
		return config.TLSALPN01 + " " + strings.ToLower(c.Identifier.Value)
	}
	return config.HTTP01 + " " + c.Token
}

// Present implements acmez.Solver.
func (s stored) Present(ctx context.Context, c acme.Challenge) error {
	_, err := s.DB.Exec(ctx, `INSERT INTO acme_challenges (id, key_authorization, expires_at) VALUES ($1, $2, now() + $3)
		ON CONFLICT (id) DO UPDATE SET key_authorization = excluded.key_authorization, expires_at = excluded.expires_at`, challengeID(c), c.KeyAuthorization, challengeTime)
	if err != nil {
		return fmt.Errorf("store a challenge: %w", err)
	}
	return nil
}

// CleanUp implements acmez.Solver.
func (s stored) CleanUp(ctx context.Context, c acme.Challenge) error {
	_, err := s.DB.Exec(ctx, `DELETE FROM acme_challenges WHERE id = $1`, challengeID(c))
	return err
}

// forget removes challenges that somebody has left behind.
func (s Store) forget(ctx context.Context) error {
	_, err := s.DB.Exec(ctx, `DELETE FROM acme_challenges WHERE expires_at < now()`)
	return err
}

// Challenges answers edges that an authority asks. Anybody on the internet can make an
// edge ask: so all who ask within batchFor share one question to the database. What is
// answered was read after it was asked: an authority may ask as soon as a challenge is
// stored, and for the same host anew with every order.
type Challenges struct {
	group coalesce.Group[string, string]
}

// NewChallenges returns the answers in a store.
func NewChallenges(s Store) *Challenges {
	return &Challenges{coalesce.Group[string, string]{Parallel: 1, Max: maxAskedAtOnce, Do: s.answers, Separate: func(error) bool { return false }}}
}

const (
	batchFor       = 20 * time.Millisecond
	maxAskedAtOnce = 1000
	maxAsked       = 300 // bytes of a token or host
)

// Mount adds the paths at which edges ask.
func (c *Challenges) Mount(mux *http.ServeMux) {
	for path, kind := range map[string]string{edgeapi.HTTPChallengePath: config.HTTP01, edgeapi.TLSChallengePath: config.TLSALPN01} {
		mux.HandleFunc("GET "+path+"{asked}", func(w http.ResponseWriter, r *http.Request) {
			answer, err := c.find(r.Context(), kind, r.PathValue("asked"))
			switch {
			case err != nil:
				http.Error(w, "try again", http.StatusServiceUnavailable)
			case answer == "":
				http.NotFound(w, r)
			default:
				w.Header().Set("Content-Type", "application/octet-stream")
				_, _ = io.WriteString(w, answer)
			}
		})
	}
}

// find returns the answer to a challenge; "": there is none.
func (c *Challenges) find(ctx context.Context, kind, asked string) (string, error) {
	if asked == "" || len(asked) > maxAsked || !utf8.ValidString(asked) || strings.ContainsRune(asked, 0) {
		return "", nil
	}
	return c.group.Call(ctx, kind+" "+asked)
}

// answers returns those to challenges, in their order; "": there is none.
func (s Store) answers(ctx context.Context, ids []string) ([]string, error) {
	pause.For(ctx, batchFor)
	rows, _ := s.DB.Query(ctx, `SELECT id, key_authorization FROM acme_challenges WHERE id = ANY($1) AND expires_at > now()`, ids)
	all := map[string]string{}
	var id, answer string
	if _, err := pgx.ForEachRow(rows, []any{&id, &answer}, func() error { all[id] = answer; return nil }); err != nil {
		return nil, errors.Join(errors.New("read challenges"), err)
	}
	found := make([]string, len(ids))
	for i, id := range ids {
		found[i] = all[id]
	}
	return found, nil
}
