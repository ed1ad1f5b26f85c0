// Package rehearsal tries a configuration on what edges recorded of the last hour, before
// it is published: it compiles the document as for edges, finds the route of each request
// as Envoy does, and has the packages of the edge filter decide about it, with the
// records of keys as they are now. What the document in force says of the same request
// stands beside it; the difference is the answer.
package rehearsal

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/requestlog"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/recording"
	"sluice.dev/sluice/platform/apierror"
)

// MaxRequests is how many recorded requests one rehearsal tries at most: the newest.
const MaxRequests = 2_000_000

// Service rehearses. It holds one rehearsal at a time.
type Service struct {
	Documents *config.Publisher
	Requests  requestlog.Store
	DocsBase  string           // public address of the gateway
	Now       func() time.Time // nil: time.Now

	busy chan struct{}
}

// New returns s, ready.
func New(s Service) *Service {
	if s.Now == nil {
		s.Now = time.Now
	}
	s.busy = make(chan struct{}, 1)
	return &s
}

// Rehearse tries a proposal on the requests of the last while, at most
// requestlog.RecordsKept, and gives up to examples of each finding. It fails with
// conflict while another rehearsal runs here, and ends when ctx does.
//
// It takes time linear in the records, of which there are MaxRequests at most, and holds
// those of the last 45 seconds that it has come to, a window for each account, key and
// address up to as many as an edge has, and what it tells of.
func (s *Service) Rehearse(ctx context.Context, p config.Proposal, last time.Duration, examples int) (Report, error) {
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	default:
		return Report{}, apierror.Errorf(decision.Conflict, "Another rehearsal is running here. Try again when it has ended.")
	}
	until := s.Now().UTC()
	x, err := s.start(ctx, p, until.Add(-last))
	if err != nil {
		return Report{}, err
	}
	x.examples = examples
	var first time.Time
	more, err := s.Requests.Records(ctx, x.from.Add(-ratelimit.Seconds*time.Second), MaxRequests, func(b requestlog.RecordedBlock) error {
		if first.IsZero() {
			first = b.BeganAt.UTC()
		}
		return x.add(b)
	})
	if err != nil {
		return Report{}, err
	}
	out := x.report()
	if x.records.err != nil {
		return Report{}, x.records.err
	}
	out.Version, out.Changes, out.Notes = p.Version, append([]config.Change{}, p.Changes...), notes(p)
	out.Record.Since, out.Record.Until = x.from, until
	if more {
		out.Record.Since = first
		out.Notes = append(out.Notes, fmt.Sprintf("There are more records than the %d that one rehearsal tries: it begins later than was asked for.", MaxRequests))
	}
	return out, nil
}

func (s *Service) start(ctx context.Context, p config.Proposal, from time.Time) (*run, error) {
	bits, err := scoperegistry.Load(ctx, s.Requests.DB)
	if err != nil {
		return nil, err
	}
	plans, err := accounts.LoadPlans(ctx, s.Requests.DB)
	if err != nil {
		return nil, err
	}
	waiting, err := config.WaitingScopes(ctx, s.Requests.DB)
	if err != nil {
		return nil, err
	}
	known := config.Numbers{Scopes: bits, Plans: plans, Waiting: waiting}
	x := &run{records: newRecords(ctx, s.Requests.DB), from: from, edges: map[string]bool{}, record: Record{Complete: true}, bites: map[Bite]int64{}}
	summer := recording.NewSummer(s.Requests.PathKey)
	if x.inForce, err = newWorld(p.InForce, p.InForce.WithNumbers(known), s.DocsBase, summer, x.records); err != nil {
		return nil, fmt.Errorf("compile the document in force: %w", err)
	}
	if x.proposed, err = newWorld(p.Proposed, p.Proposed.WithNumbers(known), s.DocsBase, summer, x.records); err != nil {
		return nil, fmt.Errorf("compile the document: %w", err)
	}
	x.proposed.quotas = quotasOf(p.InForce, p.Proposed, x.records, s.Now().UTC())
	return x, nil
}

// notes say what the records of a proposal's requests cannot tell.
func notes(p config.Proposal) (list []string) {
	list = []string{}
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	switch p.InForce.RequestLog {
	case "off":
		add("request_log is off in the document in force: nothing is being recorded.")
	case "no_path":
		add("request_log is no_path in the document in force: paths are not recorded, so each request is taken for one of the route that it had. Which routes paths would reach is not foreseen.")
	}
	was := map[string]config.Route{}
	for _, r := range p.InForce.Routes {
		was[r.Name] = r
	}
	var bodies []string
	for _, r := range p.Proposed.Routes {
		if old := was[r.Name]; r.Checks() && (!old.Checks() || !r.Request.Equal(old.Request)) || r.ChatCaps && !old.ChatCaps {
			bodies = append(bodies, r.Name)
		}
	}
	if len(bodies) > 0 {
		add("Bodies and queries are not recorded: what the checks of requests would refuse on %s is not foreseen.", names(bodies))
	}
	if !slices.Equal(p.InForce.KeyHeaders, p.Proposed.KeyHeaders) {
		add("key_headers would be others: in which header a request had its key is not recorded, so each is taken for one that has it where it may be.")
	}
	if fmt.Sprint(p.InForce.Issuers) != fmt.Sprint(p.Proposed.Issuers) {
		add("issuers would be others: tokens are not recorded. One that is good now is taken for good, with the scopes that it had; one that is not, for no good.")
	}
	if p.InForce.TrustedProxies != p.Proposed.TrustedProxies {
		add("trusted_proxies would be another number: addresses are those of now.")
	}
	return list
}

// names are some names in words.
func names(list []string) string {
	const most = 10
	if len(list) > most {
		return fmt.Sprintf("%s and %d more routes", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}
