package transports

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/live/aes67"
	"sluice.dev/sluice/platform/apierror"
)

// Bounds of what callers send.
const (
	maxName      = 100
	defaultDelay = 40 // milliseconds
	maxDelay     = 500
)

// InputRequest is the body of POST /v1/{transport}/inputs.
type InputRequest struct {
	StreamID string `json:"stream_id"`
	// Source is the id or the name of one that GET /v1/{transport}/sources lists, of OMT
	// also its address (host:port).
	Source   string `json:"source"`
	SDP      string `json:"sdp"`      // of a flow of AES67, in place of source
	Channels []int  `json:"channels"` // one or two of the source's, from 1; none: the first two
	DelayMS  int    `json:"delay_ms"` // 0: 40
}

// OutputRequest is the body of POST /v1/{transport}/outputs.
type OutputRequest struct {
	StreamID string `json:"stream_id"`
	Name     string `json:"name"`     // that is announced; empty: the stream's title
	Address  string `json:"address"`  // of a flow; empty: a group that is free
	Port     int    `json:"port"`     // 0: 5004; of OMT: the first that is free from 6400 on
	Format   string `json:"format"`   // L24 or L16; empty: L24
	Channels int    `json:"channels"` // 1 or 2; 0: 2
	TTL      int    `json:"ttl"`      // 0: 15
}

// input makes a link of a request; what is wrong goes to f.
func (v Service) input(ctx context.Context, f *form.Form, o owner.Owner, transport string, in InputRequest) (Link, error) {
	l := Link{ID: ident.New("inp"), Owner: o.ID, StreamID: in.StreamID, Transport: transport, Direction: In, CreatedAt: v.now(), State: Waiting,
		Spec: Spec{Channels: in.Channels, DelayMS: in.DelayMS}}
	if l.Spec.DelayMS == 0 {
		l.Spec.DelayMS = defaultDelay
	}
	f.Range("delay_ms", l.Spec.DelayMS, 2, maxDelay)
	if in.SDP != "" && (in.Source != "" || transport != Dante) {
		f.Fail("sdp", "cannot be combined with source, and describes flows of AES67 alone", "one of source, sdp")
		return l, nil
	}
	if in.SDP == "" {
		if err := v.fromSource(ctx, f, &l, in.Source); err != nil {
			return l, err
		}
	} else if flow, err := aes67.ParseSDP(in.SDP); err != nil {
		f.Fail("sdp", err.Error(), "the description of a flow of AES67")
	} else {
		l.Spec.Flow, l.Name, l.Address = &flow, flow.Name, flow.Address.String()+":"+strconv.Itoa(flow.Port)
		v.allowed(f, "sdp", flow.Address)
	}
	if strings.TrimSpace(l.Name) == "" {
		l.Name = "flow"
	}
	l.channels(f)
	return l, nil
}

// fromSource finds the source that a caller names.
func (v Service) fromSource(ctx context.Context, f *form.Form, l *Link, name string) error {
	var named form.Form
	if named.Text("source", name, maxName); named.Err() != nil {
		f.Text("source", name, maxName)
		return nil
	}
	found, err := v.sources(ctx, l.Transport)
	if err != nil {
		return err
	}
	for _, s := range found {
		if s.ID == name || s.Name == name {
			l.Name, l.Address, l.Spec.Flow = s.Name, s.Address, s.Spec.Flow
			if s.Spec.Flow != nil {
				v.allowed(f, "source", s.Spec.Flow.Address)
			}
			return nil
		}
	}
	switch engine := v.Settings.Engine(l.Transport); {
	case engine == External:
		l.Name = name // the program may know it although it has not said so
	case l.Transport == OMT:
		l.Name, l.Address = name, strings.TrimPrefix(name, "omt://")
		at, err := netip.ParseAddrPort(l.Address)
		if err != nil || at.Port() == 0 {
			f.Fail("source", "is no source that was heard, and no address", "an id or name of GET /v1/omt/sources, or IP:PORT")
			return nil
		}
		v.allowed(f, "source", at.Addr())
	default:
		f.Fail("source", "is no source that was heard", "an id or name of GET /v1/"+l.Transport+"/sources")
	}
	return nil
}

// allowed checks an address against what the operator allows.
func (v Service) allowed(f *form.Form, field string, a netip.Addr) {
	if !v.Settings.Network.Allows(a) {
		f.Fail(field, "has an address that the operator does not allow", "one in "+v.prefixes())
	}
}

// prefixes lists what is allowed, the first ten.
func (v Service) prefixes() string {
	var list []string
	for _, p := range v.Settings.Network.Allow[:min(10, len(v.Settings.Network.Allow))] {
		list = append(list, p.String())
	}
	return strings.Join(list, ", ")
}

// channels checks which channels of a source are taken.
func (l *Link) channels(f *form.Form) {
	most := aes67.MaxChannels
	if flow := l.Spec.Flow; flow != nil {
		most = flow.Channels
	}
	if len(l.Spec.Channels) == 0 {
		l.Spec.Channels = []int{1, 2}[:min(2, most)]
	}
	if len(l.Spec.Channels) > 2 {
		f.Fail("channels", "has too many", "one or two channels of the source")
		return
	}
	for i, n := range l.Spec.Channels {
		f.Range("channels."+strconv.Itoa(i), n, 1, most)
	}
}

// output makes a link of a request; what is wrong goes to f.
func (v Service) output(f *form.Form, o owner.Owner, transport, title string, in OutputRequest) Link {
	l := Link{ID: ident.New("out"), Owner: o.ID, StreamID: in.StreamID, Transport: transport, Direction: Out, CreatedAt: v.now(), State: Waiting,
		Name: in.Name, Spec: Spec{Channels: []int{1, 2}, Session: rand.Uint64N(1 << 62)}}
	if l.Name == "" {
		l.Name = cut(title)
	}
	f.Text("name", l.Name, maxName)
	if in.Channels == 1 {
		l.Spec.Channels = []int{1}
	}
	f.Range("channels", max(in.Channels, 1), 1, 2)
	switch {
	case v.Settings.Engine(transport) == External:
	case transport == OMT:
		v.omtOutput(f, &l, in)
	default:
		v.flow(f, &l, in)
	}
	return l
}

// omtOutput is where receivers of OMT connect.
func (v Service) omtOutput(f *form.Form, l *Link, in OutputRequest) {
	port := in.Port
	if port == 0 {
		port = 6400 + int(l.Spec.Session%200)
	}
	f.Range("port", port, 1024, 65535)
	l.Address = ":" + strconv.Itoa(port)
}

// flow is what an output of AES67 sends.
func (v Service) flow(f *form.Form, l *Link, in OutputRequest) {
	flow := aes67.Flow{Name: l.Name, Port: in.Port, TTL: in.TTL, Format: in.Format, Channels: len(l.Spec.Channels), Payload: 97, PTime: 1, Clock: v.Settings.Clock}
	set(&flow.Port, 5004)
	set(&flow.TTL, 15)
	set(&flow.Format, "L24")
	set(&flow.Clock, "local")
	f.Range("port", flow.Port, 1024, 65534)
	f.Range("ttl", flow.TTL, 1, 255)
	f.OneOf("format", flow.Format, []string{"L24", "L16"})
	if in.Address == "" {
		flow.Address = v.group(l.ID)
		if !flow.Address.IsValid() {
			f.Fail("address", "is missing", "one in "+v.prefixes())
		}
	} else {
		var err error
		if flow.Address, err = netip.ParseAddr(in.Address); err != nil || !flow.Address.Is4() {
			f.Fail("address", "is no address of IPv4", "one in "+v.prefixes())
			return
		}
		v.allowed(f, "address", flow.Address)
	}
	l.Spec.Flow, l.Address = &flow, flow.Address.String()+":"+strconv.Itoa(flow.Port)
}

// group picks a group among those that are allowed, by id.
func (v Service) group(id string) netip.Addr {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	for _, p := range v.Settings.Network.Allow {
		if !p.Addr().Is4() || !p.Addr().IsMulticast() {
			continue
		}
		base := p.Masked().Addr().As4()
		room := uint32(1)<<(32-p.Bits()) - 1
		n := binary.BigEndian.Uint32(base[:]) + h.Sum32()&room
		binary.BigEndian.PutUint32(base[:], n)
		return netip.AddrFrom4(base)
	}
	return netip.Addr{}
}

// set gives a field that is not set its default.
func set[T comparable](field *T, to T) {
	var zero T
	if *field == zero {
		*field = to
	}
}

// cut shortens a title to a name.
func cut(title string) string {
	if r := []rune(title); len(r) > maxName {
		return string(r[:maxName])
	}
	return title
}

// off is the error of a transport that does not work here.
func (v Service) off(transport string) error {
	lack := needs(transport)
	if v.Settings.Engine(transport) != "" {
		lack = "a media engine"
	}
	return apierror.Errorf(decision.NotImplemented, "The transport %s is off here: the operator must set %s.", transport, lack)
}
