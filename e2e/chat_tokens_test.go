package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// budgetHolds gives the stack's plan a token budget that some of many parallel
// requests fit into, and counts the tokens that were used in the end.
func budgetHolds(t *testing.T, s *stack, _ *model) {
	const budget, each = 400, 7 // of a day; of what a completion of the model says
	url, key := s.dev["SLUICE_RUNTIME_URL"]+"/v1/chat/completions", s.dev["SLUICE_API_KEY"]
	ask := json.RawMessage(`{"model":"m","max_tokens":150,"messages":[{"role":"user","content":"hi"}]}`)
	becomes := func(status int) {
		eventually(t, "the budget is known", func() error {
			r, err := try("POST", url, key, ask)
			if err == nil && r.StatusCode != status {
				return &unexpected{r}
			}
			return err
		})
	}
	s.query(t, `INSERT INTO token_budgets (plan, daily) VALUES ('local', 1)`)
	defer func() {
		s.query(t, `DELETE FROM token_budgets WHERE plan = 'local'`)
		// More than the budget had: it passes only once the budget is forgotten.
		ask = json.RawMessage(`{"model":"m","max_tokens":4000,"messages":[{"role":"user","content":"hi"}]}`)
		becomes(http.StatusOK)
	}()
	becomes(http.StatusForbidden)
	// Completions are recorded a moment after their end.
	for _, quiet := range []string{"\nsluice_chat_streams_open 0\n", "\nsluice_chat_settlements_waiting 0\n"} {
		eventually(t, "all is recorded", func() error {
			if text := scrape(t, "http://"+s.env["SLUICE_RUNTIME_LISTEN"]+"/metrics"); !strings.Contains(text, quiet) {
				return errors.New("not" + quiet)
			}
			return nil
		})
	}
	before := s.usedTokens(t)
	s.query(t, `UPDATE token_budgets SET daily = $1 WHERE plan = 'local'`, before+budget)
	becomes(http.StatusOK)
	var all sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for range 30 {
		all.Go(func() {
			r, err := try("POST", url, key, ask)
			if err != nil {
				t.Error(err)
				return
			}
			if r.StatusCode == http.StatusForbidden {
				wantError(t, r, 403, "BILLING_002")
			}
			mu.Lock()
			defer mu.Unlock()
			statuses[r.StatusCode]++
		})
	}
	all.Wait()
	if statuses[200] == 0 || statuses[200]+statuses[403] != 30 {
		t.Errorf("answers: %v", statuses)
	}
	eventually(t, "all is metered", func() error {
		if used := s.usedTokens(t) - before; used < int64((statuses[200]+1)*each) || used > budget {
			return fmt.Errorf("%d tokens are metered for %v", used, statuses)
		}
		return nil
	})
}

// usedTokens are those of accounts; of none named, all.
func (s *stack) usedTokens(t *testing.T, accounts ...string) (n int64) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.env["SLUICE_DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := conn.QueryRow(t.Context(), `SELECT coalesce(sum(prompt_tokens + completion_tokens), 0)::bigint FROM token_usage WHERE cardinality($1::text[]) = 0 OR account_id = ANY ($1)`, append([]string{}, accounts...)).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *stack) query(t *testing.T, sql string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.env["SLUICE_DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// repetition of a completion gets the answer of the first, which its client did not wait for.
func repetition(t *testing.T, s *stack, m *model) {
	ask := json.RawMessage(`{"model":"m","messages":[{"role":"user","content":"once"}]}`)
	url := s.dev["SLUICE_RUNTIME_URL"] + "/v1/chat/completions"
	account, key := s.keyedAccount(t, "local") // completions that other tests have left are still being counted
	left := make(chan struct{})
	m.answers(func(w http.ResponseWriter, _ *http.Request) {
		says(w, chunkText)
		<-left
		for _, e := range []string{chunkStop, chunkUsed, "[DONE]"} {
			says(w, e)
		}
	})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(string(ask)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Idempotency-Key", "e2e-once")
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	leave()
	_ = resp.Body.Close()
	close(left)
	eventually(t, "the answer is kept", func() error {
		r, err := try("POST", url, key, ask, "Idempotency-Key", "e2e-once")
		if err := unless(err, r, 200); err != nil {
			return err
		}
		if r.Header.Get("Idempotent-Replayed") != "true" || !strings.Contains(r.body, "[DONE]") || !strings.Contains(r.body, `"hi"`) {
			return fmt.Errorf("%v %s", r.Header, r.body)
		}
		return nil
	})
	if len(m.asked) != 1 {
		t.Errorf("the model was asked %d times", len(m.asked))
	}
	eventually(t, "the tokens are counted once", func() error {
		if n := s.usedTokens(t, account); n != 7 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	wantError(t, call(t, "POST", url, key, json.RawMessage(`{"model":"m","messages":[{"role":"user","content":"another"}]}`), "Idempotency-Key", "e2e-once"), 422, "idempotency_key_reused")
}
