// Package phone lets people call a stream: a line has a SIP address and, if wanted, a
// number, and the sound of whoever calls it becomes the stream's source. This package
// holds lines and calls as rows, their life and their HTTP surface; package sip speaks
// with telephones.
//
// One process speaks SIP for a database. What it has accepted is a row before it is
// answered, and rows that are open when it starts are calls that ended with the
// process before it: it closes them first, so that no call stays open for ever.
package phone

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"time"

	"sluice.dev/sluice/media/api/form"
)

// How a line decides who may call it.
const (
	Digest    = "digest"    // by a password (RFC 3261, 22.4)
	Allowlist = "allowlist" // by the address that a call comes from
)

// Bounds of a line.
const (
	MaxLines       = 100 // of one owner
	maxName        = 100 // characters
	maxNetworks    = 20
	minDuration    = 60 // seconds
	maxDuration    = 12 * 60 * 60
	usualDuration  = 60 * 60
	leastPrefixOf4 = 16 // of an IPv4 network: no allowlist opens a line to the whole world
	leastPrefixOf6 = 32
)

// Line is one row of phone_lines.
type Line struct {
	ID           string    `db:"id"`
	Owner        string    `db:"owner"`
	Account      string    `db:"account"` // who hears of its calls
	Plan         string    `db:"plan"`
	StreamID     string    `db:"stream_id"`
	Name         string    `db:"name"`
	Number       string    `db:"number"` // E.164; empty: none
	Auth         string    `db:"auth"`
	Secret       []byte    `db:"secret"` // sealed: what checks its password
	PasswordHint string    `db:"password_hint"`
	Allowlist    []string  `db:"allowlist"`
	MaxDuration  int       `db:"max_duration"` // of a call, in seconds
	CreatedAt    time.Time `db:"created_at"`
	UpdatedAt    time.Time `db:"updated_at"`
}

// Allows reports whether the line takes calls from addr without a password. It takes
// time linear in the networks of the line, of which there are at most 20.
func (l Line) Allows(addr netip.Addr) bool {
	return l.Auth == Allowlist && slices.ContainsFunc(l.Allowlist, func(text string) bool {
		network, err := netip.ParsePrefix(text)
		return err == nil && network.Contains(addr.Unmap())
	})
}

// Input is the body of POST and PATCH /v1/phone/lines. A field that is absent, or
// null, has its default on creation and stays as it is on change.
type Input struct {
	StreamID    *string   `json:"stream_id"`
	Name        *string   `json:"name"`
	Number      *string   `json:"number"` // "": none
	Auth        *string   `json:"auth"`   // stays as it was made
	Allowlist   *[]string `json:"allowlist"`
	MaxDuration *int      `json:"max_duration"`
}

// number is E.164: a plus sign and at most 15 digits.
var number = regexp.MustCompile(`^\+[1-9][0-9]{2,14}$`)

// Apply checks in and puts it into l; every bad field goes to f, and l is then not to
// be used. Whether the stream is the caller's is for the caller to see.
func (in Input) Apply(f *form.Form, l *Line) {
	made := l.Auth
	set(&l.StreamID, in.StreamID)
	if l.StreamID == "" {
		f.Fail("stream_id", "is missing", "the id of a stream of yours")
	}
	set(&l.Name, in.Name)
	if l.Name != "" {
		f.Text("name", l.Name, maxName)
	}
	set(&l.Number, in.Number)
	if l.Number != "" && !number.MatchString(l.Number) {
		f.Fail("number", "is not a telephone number", "E.164, such as +493012345678")
	}
	set(&l.Auth, in.Auth)
	if l.Auth == "" {
		l.Auth = Digest
	}
	f.OneOf("auth", l.Auth, []string{Digest, Allowlist})
	if made != "" && l.Auth != made {
		f.Fail("auth", "cannot change", made+", or another line")
	}
	if in.Allowlist != nil {
		l.Allowlist = slices.Clone(*in.Allowlist)
	}
	l.checkAllowlist(f)
	set(&l.MaxDuration, in.MaxDuration)
	f.Range("max_duration", l.MaxDuration, minDuration, maxDuration)
}

// checkAllowlist checks the networks of l and writes each in its usual form.
func (l *Line) checkAllowlist(f *form.Form) {
	switch n := len(l.Allowlist); {
	case l.Auth == Allowlist && (n == 0 || n > maxNetworks):
		f.Fail("allowlist", "has no networks, or too many", "1 to "+strconv.Itoa(maxNetworks)+" networks, such as 192.0.2.0/24")
		return
	case l.Auth == Digest && n > 0:
		f.Fail("allowlist", "belongs to lines with auth allowlist", "no networks, or auth allowlist")
		return
	}
	for i, text := range l.Allowlist {
		network, ok := parseNetwork(text)
		if !ok {
			f.Fail("allowlist."+strconv.Itoa(i), "is not a network, or one too large",
				"address or CIDR, at least /"+strconv.Itoa(leastPrefixOf4)+" (IPv4) or /"+strconv.Itoa(leastPrefixOf6)+" (IPv6)")
			continue
		}
		l.Allowlist[i] = network.String()
	}
	if l.Allowlist == nil {
		l.Allowlist = []string{}
	}
}

// parseNetwork reads an address or a CIDR that is small enough to be somebody's. It
// takes time linear in text, which the body's bound bounds.
func parseNetwork(text string) (netip.Prefix, bool) {
	network, err := netip.ParsePrefix(text)
	if err != nil {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return netip.Prefix{}, false
		}
		addr = addr.Unmap()
		network = netip.PrefixFrom(addr, addr.BitLen())
	}
	least := leastPrefixOf6
	if network.Addr().Is4() {
		least = leastPrefixOf4
	}
	return network.Masked(), network.Bits() >= least && !network.Addr().Is4In6()
}

// set overwrites dst where the caller has said something.
func set[T any](dst, src *T) {
	if src != nil {
		*dst = *src
	}
}

// LineView is a line as callers see it.
type LineView struct {
	ID           string    `json:"id"`
	StreamID     string    `json:"stream_id"`
	Name         string    `json:"name"`
	URI          string    `json:"uri"` // sip:line_…@host:port
	Number       *string   `json:"number"`
	Auth         string    `json:"auth"`
	Username     *string   `json:"username"`           // of lines with auth digest
	Password     string    `json:"password,omitempty"` // only where it was made just now
	PasswordHint *string   `json:"password_hint"`      // its last four letters
	Allowlist    []string  `json:"allowlist"`
	MaxDuration  int       `json:"max_duration"`
	CreatedAt    time.Time `json:"created_at"`
	UpdatedAt    time.Time `json:"updated_at"`
}

// view shows l. password is empty but where it was made just now.
func (v Service) view(l Line, password string) LineView {
	out := LineView{ID: l.ID, StreamID: l.StreamID, Name: l.Name, URI: "sip:" + l.ID + "@" + v.Settings.Host, Auth: l.Auth, Password: password,
		Allowlist: l.Allowlist, MaxDuration: l.MaxDuration, CreatedAt: l.CreatedAt.UTC(), UpdatedAt: l.UpdatedAt.UTC()}
	if l.Number != "" {
		out.Number = &l.Number
	}
	if l.Auth == Digest {
		out.Username, out.PasswordHint = &l.ID, &l.PasswordHint
	}
	return out
}
