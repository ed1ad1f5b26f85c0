package issuers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Config says whose keys are read and how often.
type Config struct {
	DB postgres.DB
	// Own is the name of this platform as an issuer, and Keys gives its keys.
	// Both must be set.
	Own  string
	Keys func(context.Context) (sessions.JWKS, error)
	// Client reads the key sets of other issuers; it must keep bodies of MaxBody.
	Client *outbound.Client
	// Look is how often the configuration and the own keys are looked at; 0: 5 s.
	Look time.Duration
	// Fetch is how often the keys of another issuer are read; 0: 1 minute.
	Fetch time.Duration
	// Retry is how soon after a failure they are read again; 0: 10 s.
	Retry time.Duration
	// Empty is for how long an issuer's set may have no usable key before the keys
	// of before end: it may have been a mistake; 0: 10 minutes.
	Empty time.Duration
	Now   func() time.Time // nil: time.Now
	Log   *slog.Logger     // nil: slog.Default
}

// Service keeps the edges' keys of issuers the same as the issuers' own. It may
// run in every replica of the control plane.
type Service struct {
	config Config
	due    map[string]time.Time // when another issuer's keys are read next, by its address
	failed map[string]bool      // the last reading failed, and was logged
	empty  map[string]time.Time // since when its set has no usable key
}

// New returns a Service.
func New(c Config) *Service {
	c.Look, c.Fetch, c.Retry = cmp.Or(c.Look, 5*time.Second), cmp.Or(c.Fetch, time.Minute), cmp.Or(c.Retry, 10*time.Second)
	c.Empty = cmp.Or(c.Empty, 10*time.Minute)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &Service{config: c, due: map[string]time.Time{}, failed: map[string]bool{}, empty: map[string]time.Time{}}
}

// Run brings keys up to date until ctx ends. What fails is logged and tried
// again; edges go on with what they have.
func (s *Service) Run(ctx context.Context) {
	ticker := time.NewTicker(s.config.Look)
	defer ticker.Stop()
	for {
		if err := s.Sync(ctx); err != nil && ctx.Err() == nil {
			s.config.Log.Error("bring keys of issuers up to date", "cause", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Sync makes the edges' keys what they should be now: the platform's own, those
// of other issuers whose time has come, and none of issuers that are no longer
// in the configuration. It returns what went wrong with Postgres; an issuer that
// cannot be read is logged, and keeps its last good keys. A key that is missing from
// a good set ends at once, all keys when sets have had none for the time of Empty.
//
// A token whose key is not known is refused, and does not make anybody read the
// issuer's keys: who sends such tokens would then decide how often. Issuers
// publish a key some time before they sign with it; an edge has it within Fetch.
func (s *Service) Sync(ctx context.Context) error {
	errs := []error{s.own(ctx)}
	v, err := (config.Store{DB: s.config.DB}).Latest(ctx)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	errs = append(errs, s.others(ctx, v.Document.Issuers))
	named := []string{s.config.Own}
	for _, is := range v.Document.Issuers {
		named = append(named, is.Issuer)
	}
	gone, err := forgotten(ctx, s.config.DB, named)
	errs = append(errs, err)
	for _, issuer := range gone {
		_, err := Replace(ctx, s.config.DB, issuer, nil)
		errs = append(errs, err)
		s.config.Log.Info("issuer is trusted no more", "issuer", issuer)
	}
	return errors.Join(errs...)
}

// own brings the keys of this platform up to date. A new one signs only after
// two minutes, so every edge knows it by then.
func (s *Service) own(ctx context.Context) error {
	set, err := s.config.Keys(ctx)
	if err != nil {
		return err
	}
	b, err := json.Marshal(set)
	if err != nil {
		return err
	}
	keys, err := Parse(b)
	if err != nil {
		return err
	}
	return s.put(ctx, s.config.Own, keys)
}

// others reads the keys of those issuers whose time has come, all at once, since
// one may take as long as the client lets it.
func (s *Service) others(ctx context.Context, list []config.Issuer) error {
	now := s.config.Now()
	list = slices.DeleteFunc(slices.Clone(list), func(is config.Issuer) bool { return now.Before(s.due[key(is)]) })
	keys, failures := make([][]Key, len(list)), make([]error, len(list))
	var wait sync.WaitGroup
	for i, is := range list {
		wait.Go(func() { keys[i], failures[i] = s.fetch(ctx, is.JWKSURI) })
	}
	wait.Wait()
	var errs []error
	for i, is := range list {
		if s.emptied(is, now, failures[i]) || s.noted(is, now, failures[i]) {
			errs = append(errs, s.put(ctx, is.Issuer, keys[i]))
		}
	}
	return errors.Join(errs...)
}

// key is what the state of an issuer is kept under: a new address is read at once.
func key(is config.Issuer) string { return is.Issuer + " " + is.JWKSURI }

// emptied reports whether the issuer has had no usable key for so long that those of
// before end. A reading that fails says nothing of that.
func (s *Service) emptied(is config.Issuer, now time.Time, failure error) bool {
	switch {
	case failure == nil:
		delete(s.empty, key(is))
		return false
	case !errors.Is(failure, ErrNoKey):
		return false
	}
	since, known := s.empty[key(is)]
	if !known {
		s.empty[key(is)], since = now, now
	}
	if now.Sub(since) < s.config.Empty {
		return false
	}
	s.due[key(is)] = now.Add(s.config.Retry)
	return true
}

// noted says when the issuer's keys are read next, and reports whether they were
// read now.
func (s *Service) noted(is config.Issuer, now time.Time, failure error) bool {
	if failure == nil {
		s.failed[key(is)], s.due[key(is)] = false, now.Add(s.config.Fetch)
		return true
	}
	if !s.failed[key(is)] {
		s.config.Log.Warn("keys of an issuer cannot be read; the last good ones stay", "issuer", is.Issuer, "cause", failure)
	}
	s.failed[key(is)], s.due[key(is)] = true, now.Add(s.config.Retry)
	return false
}

// fetch reads a key set; anything but a whole one is a failure.
func (s *Service) fetch(ctx context.Context, address string) ([]Key, error) {
	res, err := s.config.Client.Do(ctx, outbound.Request{Method: http.MethodGet, URL: address,
		Header: http.Header{"Accept": {"application/jwk-set+json, application/json"}}})
	if err != nil {
		return nil, err
	}
	if res.Status != http.StatusOK || res.Truncated {
		return nil, fmt.Errorf("answer %d with %d bytes", res.Status, len(res.Body))
	}
	return Parse(res.Body)
}

// put makes keys the issuer's and logs when that changed something.
func (s *Service) put(ctx context.Context, issuer string, keys []Key) error {
	changed, err := Replace(ctx, s.config.DB, issuer, keys)
	if changed {
		s.config.Log.Info("keys of an issuer have changed", "issuer", issuer, "keys", len(keys))
	}
	return err
}
