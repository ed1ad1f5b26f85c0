package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A key that was made before chat asked for a scope goes on without one refused request while a
// stack is upgraded, from the state that the migration leaves; a key made since is refused in
// the end.
func TestKeysOfBeforeChatOn(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	former, id := s.newKey(t, "streams:read")
	fresh, _ := s.newKey(t, "streams:read")
	s.query(t, `UPDATE api_keys SET chat_before = true WHERE id = $1`, id)
	s.query(t, `UPDATE chat_scopes SET asked_at = NULL`)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	s = startIn(t, s.dir, s.env)
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	chat := func(key string, status int) error {
		r, err := try(http.MethodPost, s.dev["SLUICE_RUNTIME_URL"]+"/v1/chat/completions", key, json.RawMessage(`{"model":"echo-1","messages":[{"role":"user","content":"hi"}]}`))
		return unless(err, r, status)
	}
	eventually(t, "the key of before chats", func() error { return chat(former, 200) })
	if err := chat(fresh, 200); err != nil {
		t.Errorf("routes ask before the records are there: %v", err)
	}
	type chats struct {
		n        int64
		failures []string
	}
	stop, chatted := make(chan struct{}), make(chan chats, 1)
	go func() {
		n, failures := pacedLoad(stop, 10*loadEvery, 1, func() error { return chat(former, 200) }) // the change takes a minute
		chatted <- chats{n, failures}
	}()
	eventually(t, "its record is sent again", func() error {
		conn, err := pgx.Connect(t.Context(), s.env["SLUICE_DATABASE_URL"])
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(t.Context()))
		var sent bool
		if err = conn.QueryRow(t.Context(), `SELECT sent_at IS NOT NULL FROM chat_scopes`).Scan(&sent); err == nil && !sent {
			err = errors.New("not yet")
		}
		return err
	})
	s.query(t, `UPDATE chat_scopes SET sent_at = sent_at - interval '1 hour'`) // edges have time to say where they are
	eventually(t, "routes ask", func() error { return chat(fresh, 403) })
	close(stop)
	if all := <-chatted; all.n == 0 || len(all.failures) > 0 {
		t.Errorf("of %d chats failed %v", all.n, all.failures)
	}
	if err := chat(former, 200); err != nil {
		t.Error(err)
	}
}
