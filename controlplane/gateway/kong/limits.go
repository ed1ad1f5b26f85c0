package kong

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/config"
)

const (
	// defaultPerMinute is the limit of routes that have none: Kong has none at all.
	defaultPerMinute = 100_000
	maxPerMinute     = 1 << 30
	maxClasses       = 64
)

// class is the rate class of route r of service s; "" is the default.
func (i *importer) class(s, r *node, open bool) string {
	if p, _ := i.plugins.of("rate-limiting-advanced", s, r); p != nil {
		i.noteAt(ByHand, p, "give its routes a class with the limit for 60 seconds")
	}
	p, level := i.plugins.of("rate-limiting", s, r)
	if p == nil {
		return ""
	}
	minute, ok := i.perMinute(p)
	if !ok {
		return ""
	}
	if open {
		i.noteAt(ByHand, p, "requests without a credential have one limit for all routes: anonymous_per_minute, see docs/config.md")
	}
	name := map[string]string{"route": "route-" + r.str("name"), "service": "service-" + s.str("name"), "global": "global"}[level]
	name = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(name), "-"), "-._")
	name = name[:min(len(name), 60)]
	for n, c := range i.doc.Classes {
		if c.Name == name && c.PerMinute == minute {
			return name
		}
		if c.Name == name {
			name = fmt.Sprintf("%s-%d", name, n+2)
		}
	}
	if len(i.doc.Classes) == maxClasses {
		i.noteAt(ByHand, p, "there are more than 64 limits: its routes have that of the class default")
		return ""
	}
	i.doc.Classes = append(i.doc.Classes, config.Class{Name: name, PerMinute: minute})
	return name
}

// perMinute is a limit in requests a minute.
func (i *importer) perMinute(p *node) (limit uint32, ok bool) {
	c := p.get("config")
	for _, name := range []string{"policy", "fault_tolerant", "hide_client_headers", "redis", "redis_host", "redis_port", "redis_password", "redis_username", "redis_timeout",
		"redis_database", "redis_ssl", "redis_ssl_verify", "redis_server_name", "error_code", "error_message", "sync_rate", "path", "header_name"} {
		c.get(name).ignore()
	}
	if by := c.str("limit_by"); by != "" && by != "consumer" && by != "credential" {
		i.noteAt(Differs, p, "rate-limiting by "+by+": here a limit is for each account")
	}
	minute, given := c.number("minute")
	second, bySecond := c.number("second")
	for _, unit := range []string{"hour", "day", "month", "year"} {
		if _, ok := c.number(unit); ok {
			i.noteAt(Differs, p, "rate-limiting by the "+unit+" is not translated: see quota in docs/config.md for months")
		}
	}
	switch {
	case !given && bySecond:
		minute = min(second, maxPerMinute) * 60
		i.noteAt(Differs, p, fmt.Sprintf("rate-limiting by the second: %d a second became %d in any 60 seconds", second, minute))
	case bySecond:
		i.noteAt(Differs, p, "rate-limiting by the second beside the minute is not translated")
	case !given:
		return 0, false
	}
	if minute < 1 || minute > maxPerMinute {
		i.noteAt(ByHand, p, fmt.Sprintf("rate-limiting: a limit is from 1 to %d a minute", maxPerMinute))
		return 0, false
	}
	return uint32(minute), true
}

var (
	corsOrigin   = regexp.MustCompile(`^https?://(\*\.)?[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[0-9]{1,5})?$`)
	corsDefaults = []string{"methods", "preflight_continue", "private_network", "allow_origin_absent"}
)

// cors is what browsers may do on route r of service s; nil: nothing but what the
// service says.
func (i *importer) cors(s, r *node) *config.CORS {
	p, _ := i.plugins.of("cors", s, r)
	if p == nil {
		return nil
	}
	c := p.get("config")
	for _, name := range corsDefaults {
		c.get(name).ignore()
	}
	out := &config.CORS{Credentials: c.is("credentials", false)}
	origins := c.strs("origins")
	if len(origins) == 0 {
		origins = []string{"*"}
	}
	for _, o := range origins {
		if o != "*" && !corsOrigin.MatchString(o) {
			i.noteAt(ByHand, p, "cors: the origin "+o+" cannot be expressed")
			continue
		}
		if !slices.Contains(out.Origins, o) && len(out.Origins) < 100 {
			out.Origins = append(out.Origins, o)
		}
	}
	if len(out.Origins) == 0 {
		out.Origins = []string{}
	}
	if out.Credentials && slices.Contains(out.Origins, "*") {
		out.Credentials = false
		i.noteAt(ByHand, p, "cors: credentials for any origin would let any page act for its visitors: name the origins")
	}
	out.Headers, out.Expose = i.headers(p, c.strs("headers")), i.headers(p, c.strs("exposed_headers"))
	if seconds, ok := c.number("max_age"); ok && seconds > 0 {
		out.MaxAge = config.Duration(fmt.Sprintf("%ds", min(seconds, 86400)))
	}
	return out
}

// headers are those of list that are names of headers.
func (i *importer) headers(p *node, list []string) (good []string) {
	for _, h := range list {
		if headerName.MatchString(h) && len(good) < 100 {
			good = append(good, h)
		} else {
			i.noteAt(Differs, p, "cors: the header "+h+" cannot be expressed")
		}
	}
	return good
}

// bodyLimit is the largest body of route r of service s; 0: the default.
func (i *importer) bodyLimit(s, r *node) uint64 {
	p, _ := i.plugins.of("request-size-limiting", s, r)
	if p == nil {
		i.noteOnce(Differs, "bodies may have 10 MiB where no plugin says otherwise: see body_limit and streaming in docs/config.md")
		return 0
	}
	c := p.get("config")
	c.get("require_content_length").ignore()
	unit := map[string]uint64{"": 1 << 20, "megabytes": 1 << 20, "kilobytes": 1 << 10, "bytes": 1}[c.str("size_unit")]
	size, ok := c.number("allowed_payload_size")
	if !ok {
		size = 128
	}
	if size < 1 || unit == 0 || size > 1<<20 && unit > 1 || size > 1<<40 {
		i.noteAt(ByHand, p, "request-size-limiting: its size cannot be read")
		return 0
	}
	return uint64(size) * unit
}
