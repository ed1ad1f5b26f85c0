package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A key that was made before chat asked for a scope goes on without one refused request while a
// stack is upgraded, from the state that the migration leaves; a key made since is refused in
// the end.
func TestKeysOfBeforeChatOn(t *testing.T) {
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
	ctx, stop := context.WithCancel(t.Context())
	var chatting sync.WaitGroup
	n := 0
	chatting.Go(func() {
		for ; ctx.Err() == nil; n++ {
			if err := chat(former, 200); err != nil {
				t.Error(err)
				return
			}
		}
	})
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
	stop()
	chatting.Wait()
	if err := chat(former, 200); err != nil || n == 0 {
		t.Errorf("%d answers, then %v", n, err)
	}
}
