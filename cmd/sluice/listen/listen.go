// Package listen passes events of an account on to a program on this machine, each as a
// webhook delivery of it would be: the same body, headers and signatures.
//
// Events are asked for behind a cursor, which moves on when they have been passed on: a
// connection that breaks, or a gateway that restarts, loses none. As long as the program
// runs, each is passed on once; what the receiver answers is shown, and nothing is sent
// again.
package listen

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sluice.dev/sluice/platform/process/pause"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/sender"
	"sluice.dev/sluice/workers/webhooks/signature"
)

// answerTimeout is how long a receiver has: more than a delivery gives it, for whoever
// looks at it in a debugger.
const answerTimeout = 30 * time.Second

// maxPause bounds the pause between two tries to reach the gateway.
const maxPause = 5 * time.Second

// Config says what is passed on, and where to.
type Config struct {
	// Next asks for what came behind a cursor, and waits for it; an empty cursor: from
	// now on. An error that Final reports ends it all; after others it is asked again.
	Next  func(ctx context.Context, cursor string) (webhooks.Listened, error)
	Final func(error) bool
	// To is the address that events are sent to; "": nowhere, they are only shown.
	To string
	// Secret signs what the gateway has not signed.
	Secret []byte
	// Ready is told when events count, Heard of each with what came of it, and Lost when
	// the gateway does not answer.
	Ready func()
	Heard func(Result)
	Lost  func(error)
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Pause waits between tries; nil: pause.For.
	Pause func(ctx context.Context, d time.Duration) bool
}

// Result is an event and what came of it.
type Result struct {
	webhooks.Heard
	Sent    bool
	Status  int // of the receiver's answer; 0: none
	Took    time.Duration
	Failure error // why there is no answer
}

// Late says that a real delivery would have failed, as the receiver took too long.
func (r Result) Late() bool { return r.Sent && r.Took > sender.Timeout }

// Run listens until ctx ends, which is no error, or the gateway refuses.
func Run(ctx context.Context, c Config) error {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Pause == nil {
		c.Pause = pause.For
	}
	client := &http.Client{Timeout: answerTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	cursor, wait := "", time.Duration(0)
	for ctx.Err() == nil {
		page, err := c.Next(ctx, cursor)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && c.Final(err):
			return err
		case err != nil:
			if wait == 0 {
				c.Lost(err)
			}
			wait = min(max(2*wait, 100*time.Millisecond), maxPause)
			c.Pause(ctx, wait)
			continue
		}
		wait = 0
		if cursor == "" {
			c.Ready()
		}
		for _, e := range page.Data {
			if r := c.pass(ctx, client, e); ctx.Err() == nil {
				c.Heard(r)
			}
		}
		cursor = page.Cursor
	}
	return nil
}

// pass sends one event to the receiver, and says what came back.
func (c Config) pass(ctx context.Context, client *http.Client, e webhooks.Heard) Result {
	out := Result{Heard: e}
	if c.To == "" {
		return out
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.To, bytes.NewReader([]byte(e.Body)))
	if err != nil {
		out.Failure = err
		return out
	}
	began := c.Now()
	if e.Headers == nil {
		req.Header = sender.Headers(e.ID, began)
		signature.Set(req.Header, [][]byte{c.Secret}, e.ID, began, []byte(e.Body))
	}
	for name, value := range e.Headers {
		req.Header.Set(name, value)
	}
	res, err := client.Do(req)
	out.Sent, out.Took = true, c.Now().Sub(began)
	if err != nil {
		out.Failure = inner(err)
		return out
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20)) // so that the connection can be used again
	out.Status = res.StatusCode
	return out
}

// inner is an error of a client without the address, which the reader knows.
func inner(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// Address completes an address that is given as people write it: localhost:3000/hooks, or
// a port alone.
func Address(given string) (string, error) {
	whole := given
	switch {
	case given == "":
		return "", nil
	case strings.Trim(given, "0123456789") == "":
		whole = "http://localhost:" + given
	case !strings.Contains(given, "://"):
		whole = "http://" + given
	}
	u, err := url.Parse(whole)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%q is not an address such as http://localhost:3000/hooks", given)
	}
	return u.String(), nil
}

// Secret is what signs for whoever holds an API key: the same each time, so that it can
// stand in the receiver's settings, and nothing by which the key could be found.
func Secret(key string) string {
	m := hmac.New(sha256.New, []byte(key))
	m.Write([]byte("secret of sluice listen"))
	return "whsec_" + base64.StdEncoding.EncodeToString(m.Sum(nil)[:24])
}
