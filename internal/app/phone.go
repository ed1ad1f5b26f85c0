package app

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"sluice.dev/sluice/dev/programs"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/phone"
	"sluice.dev/sluice/media/phone/sip"
	"sluice.dev/sluice/platform/process/bindcheck"
)

// freeSIP reports whether SIP can be taken at addr, by UDP and TCP.
func freeSIP(addr, variable string) error {
	return errors.Join(bindcheck.Free(addr, variable), bindcheck.FreeUDP(addr, variable))
}

// phone adds to the product's configuration how telephones reach it, if they do: that
// takes the media engine, and ffmpeg.
func (e Environment) phone(c *media.Config) error {
	if e.Get("SLUICE_SIP_ADDR") == programs.Off {
		return nil
	}
	trunk, err := e.trunk()
	if err != nil {
		return err
	}
	prefixes, err := e.prefixesToCall()
	c.Phone = phone.Settings{Available: c.Endpoints.Available && c.FFmpeg != "", Host: e.public("SLUICE_SIP_ADDR"), Trunk: trunk.Host, Prefixes: prefixes}
	return err
}

// toCall is how what may be called begins.
var toCall = regexp.MustCompile(`^\+?[A-Za-z0-9._-]{0,64}$`)

// prefixesToCall reads how numbers and names begin that calls may go out to.
func (e Environment) prefixesToCall() (list []string, err error) {
	for text := range strings.SplitSeq(e.Get("SLUICE_SIP_TRUNK_PREFIXES"), ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if !toCall.MatchString(text) {
			return nil, fmt.Errorf("SLUICE_SIP_TRUNK_PREFIXES has %q: it lists how numbers begin that may be called, such as +49,+4366; + stands for every number", text)
		}
		list = append(list, text)
	}
	return list, nil
}

// telephony is what the engine's process takes and makes calls with; nil: it does
// neither.
func (e Environment) telephony(c media.Config) (*sip.Config, error) {
	if !c.Phone.Available {
		return nil, nil
	}
	trunk, err := e.trunk()
	if err != nil {
		return nil, err
	}
	trunk.Password = e.Get("SLUICE_SIP_TRUNK_PASSWORD")
	out := &sip.Config{Listen: e.Get("SLUICE_SIP_ADDR"), RTMP: localAddress(e.Get("SLUICE_RTMP_ADDR")), Trunk: trunk}
	if out.First, out.Last, err = portRange(e.Get("SLUICE_SIP_MEDIA_PORTS")); err != nil {
		return nil, fmt.Errorf("SLUICE_SIP_MEDIA_PORTS: %w", err)
	}
	if text := e.Get("SLUICE_SIP_PUBLIC_IP"); text != "" {
		if out.PublicIP, err = netip.ParseAddr(text); err != nil {
			return nil, fmt.Errorf("SLUICE_SIP_PUBLIC_IP is %q: it is an address such as 192.0.2.1", text)
		}
	}
	return out, nil
}

// portRange reads the first and the last port of a range such as 20000-20199.
func portRange(text string) (first, last uint16, err error) {
	from, to, _ := strings.Cut(text, "-")
	a, bad := strconv.ParseUint(from, 10, 16)
	b, worse := strconv.ParseUint(to, 10, 16)
	if bad != nil || worse != nil || a < 1024 || b < a {
		return 0, 0, fmt.Errorf("%q is no range of ports above 1023, such as 20000-20199", text)
	}
	return uint16(a), uint16(b), nil
}

// trunk reads the provider that calls go out through.
func (e Environment) trunk() (sip.Trunk, error) {
	text := e.Get("SLUICE_SIP_TRUNK")
	if text == "" {
		return sip.Trunk{}, nil
	}
	rest, ok := strings.CutPrefix(text, "sip:")
	rest, options, _ := strings.Cut(rest, ";")
	user, host, named := strings.Cut(rest, "@")
	if !named {
		user, host = "", rest
	}
	transport := strings.TrimPrefix(options, "transport=")
	if transport == "" {
		transport = "udp"
	}
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	if !ok || name == "" || strings.ContainsAny(user, ":") || transport != "udp" && transport != "tcp" {
		return sip.Trunk{}, errors.New("SLUICE_SIP_TRUNK is no address such as sip:USER@sip.example:5060;transport=tcp (the password has a variable of its own)")
	}
	return sip.Trunk{Host: host, User: user, Transport: transport}, nil
}
