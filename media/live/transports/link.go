// Package transports connects streams with the broadcast transports of an operator's
// network: Dante as AES67, OMT and NDI. A link is a source that a stream takes, or an
// output by which its sound or picture goes out. The API stores links; the media
// engine's process works on them (Supervisor), by code of ours or by a program that
// the operator has set (a bridge), and says how it goes.
package transports

import (
	"net/netip"
	"time"

	"sluice.dev/sluice/media/live/aes67"
	"sluice.dev/sluice/media/live/streams"
)

// The transports.
const (
	Dante = "dante" // by AES67
	NDI   = "ndi"
	OMT   = "omt"
)

// Names lists them.
var Names = []string{Dante, NDI, OMT}

// Settings are what the operator allows and has. The zero value allows nothing.
type Settings struct {
	// Network is where flows of AES67 and connections of OMT may go.
	Network aes67.Network
	// Clock is what the machine's clock follows, for descriptions of flows; see
	// aes67.ValidClock. Empty: local.
	Clock string
	// Bridges are the programs that speak a transport, by its name.
	Bridges map[string]string
}

// Kinds of engines.
const (
	BuiltIn  = "built_in"
	External = "external"
)

// Engine says what speaks a transport here: BuiltIn, External or, if nothing does, "".
func (s Settings) Engine(transport string) string {
	switch {
	case s.Bridges[transport] != "":
		return External
	case transport != NDI && s.Network.Usable():
		return BuiltIn
	}
	return ""
}

// needs says what an operator must set for a transport.
func needs(transport string) string {
	const network = "SLUICE_TRANSPORT_INTERFACES and SLUICE_TRANSPORT_ALLOW_CIDRS, the interfaces and addresses that may be used"
	switch transport {
	case NDI:
		return "SLUICE_NDI_BRIDGE, a program that speaks NDI"
	case OMT:
		return network + ", or SLUICE_OMT_BRIDGE, a program that speaks OMT"
	}
	return network
}

// Directions of a link.
const (
	In  = "in"
	Out = "out"
)

// States of a link.
const (
	Waiting = "waiting" // nothing comes yet: no packets, or the stream is off air
	Running = "running"
	Stopped = "stopped" // the stream was stopped, or its plan does not allow it; an action start lets it go on
	Failed  = "failed"  // tried again; message says why
)

// Spec is what a link needs to know of its transport.
type Spec struct {
	Flow     *aes67.Flow `json:"flow,omitempty"`     // of AES67
	Channels []int       `json:"channels,omitempty"` // which of a source's become the stream's, from 1
	DelayMS  int         `json:"delay_ms,omitempty"` // of a source's sound
	Session  uint64      `json:"session,omitempty"`  // of an output's description
}

// Link is a row of media_links.
type Link struct {
	ID        string         `db:"id"`
	Owner     string         `db:"owner"`
	StreamID  string         `db:"stream_id"`
	Transport string         `db:"transport"`
	Direction string         `db:"direction"`
	Name      string         `db:"name"`
	Address   string         `db:"address"`
	Spec      Spec           `db:"spec"`
	State     string         `db:"state"`
	Message   string         `db:"message"`
	Stats     map[string]any `db:"stats"`
	Described string         `db:"described"` // what receivers of an output need: SDP, or an address
	SeenAt    *time.Time     `db:"seen_at"`
	CreatedAt time.Time      `db:"created_at"`
}

// Source is a row of media_transport_sources.
type Source struct {
	Transport string    `db:"transport"`
	ID        string    `db:"id"`
	Name      string    `db:"name"`
	Address   string    `db:"address"`
	Spec      Spec      `db:"spec"`
	SeenAt    time.Time `db:"seen_at"`
}

// silence is after how long without a word of the engine's process a state counts for
// nothing.
const silence = 15 * time.Second

// View is a link as callers see it.
type View struct {
	ID        string         `json:"id"`
	Transport string         `json:"transport"`
	StreamID  string         `json:"stream_id"`
	Name      string         `json:"name"`
	Engine    string         `json:"engine"`
	Address   *string        `json:"address"`  // null: the bridge knows
	Format    *string        `json:"format"`   // L24, L16; null: not of AES67
	Channels  []int          `json:"channels"` // of the source, that are taken; of an output: all
	DelayMS   *int           `json:"delay_ms"`
	State     string         `json:"state"`
	Message   *string        `json:"message"`
	Stats     map[string]any `json:"stats"` // null before the first
	CreatedAt time.Time      `json:"created_at"`
}

// view shows a link.
func (v Service) view(l Link) View {
	out := View{ID: l.ID, Transport: l.Transport, StreamID: l.StreamID, Name: l.Name, Engine: v.Settings.Engine(l.Transport), Channels: l.Spec.Channels,
		State: l.State, Stats: l.Stats, CreatedAt: l.CreatedAt.UTC()}
	if l.SeenAt != nil && v.Now().Sub(*l.SeenAt) > silence || !v.Available {
		out.State, l.Message = Waiting, "The media engine does not answer."
	}
	if out.Channels == nil {
		out.Channels = []int{}
	}
	if l.Message != "" {
		out.Message = &l.Message
	}
	if l.Transport == OMT && l.Direction == Out && l.Described != "" {
		l.Address = l.Described
	}
	if l.Address != "" {
		out.Address = &l.Address
	}
	if l.Spec.Flow != nil {
		out.Format = &l.Spec.Flow.Format
	}
	if l.Direction == In && l.Spec.DelayMS > 0 {
		out.DelayMS = &l.Spec.DelayMS
	}
	return out
}

// SourceView is a source as callers see it.
type SourceView struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Address  *string   `json:"address"`
	Format   *string   `json:"format"`
	Channels *int      `json:"channels"`
	Clock    *string   `json:"clock"` // what the sender's clock follows, where it says so
	SeenAt   time.Time `json:"seen_at"`
}

func viewSource(s Source) SourceView {
	out := SourceView{ID: s.ID, Name: s.Name, SeenAt: s.SeenAt.UTC()}
	if s.Address != "" {
		out.Address = &s.Address
	}
	if f := s.Spec.Flow; f != nil {
		out.Format, out.Channels = &f.Format, &f.Channels
		if f.Clock != "" {
			out.Clock = &f.Clock
		}
	}
	return out
}

// About says what a transport can do here.
type About struct {
	Transport string         `json:"transport"`
	Engine    string         `json:"engine"`   // built_in or external
	Pictures  bool           `json:"pictures"` // false: sound alone
	Allowed   []netip.Prefix `json:"allowed"`  // addresses that may be used
}

// about describes a transport.
func (v Service) about(transport string) (About, error) {
	if !v.usable(transport) {
		return About{}, v.off(transport)
	}
	engine := v.Settings.Engine(transport)
	return About{Transport: transport, Engine: engine, Pictures: engine == External, Allowed: append([]netip.Prefix{}, v.Settings.Network.Allow...)}, nil
}

// usable reports whether a transport works here.
func (v Service) usable(transport string) bool {
	return v.Available && v.Settings.Engine(transport) != ""
}

// status of a stream, for what waits for it.
func onAir(s streams.Status) bool { return s != streams.Idle && s != streams.Ended }
