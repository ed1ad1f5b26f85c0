package app

import (
	"strings"
	"testing"

	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/phone"
	"sluice.dev/sluice/media/phone/sip"
)

func TestTrunks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]sip.Trunk{
		"":                         {},
		"sip:sip.example":          {Host: "sip.example", Transport: "udp"},
		"sip:me@sip.example:5070":  {Host: "sip.example:5070", User: "me", Transport: "udp"},
		"sip:h;transport=tcp":      {Host: "h", Transport: "tcp"},
		"sip:me@h:1;transport=udp": {Host: "h:1", User: "me", Transport: "udp"},
		"sip:[2001:db8::1]:5060":   {Host: "[2001:db8::1]:5060", Transport: "udp"},
	} {
		if got, err := setTo("SLUICE_SIP_TRUNK", text).trunk(); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"sip.example", "sip:", "sip:me:secret@h", "sip:me@:5060", "sip:h;transport=tls", "tel:+49301"} {
		if got, err := setTo("SLUICE_SIP_TRUNK", text).trunk(); err == nil || !strings.Contains(err.Error(), "SLUICE_SIP_TRUNK") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

// Whoever may be called begins as the operator says: nobody, where they say nothing.
func TestPrefixesToCall(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 0, " , ": 0, "+": 1, "+49, +4366,desk-": 3, "49": 1} {
		if got, err := setTo("SLUICE_SIP_TRUNK_PREFIXES", text).prefixesToCall(); err != nil || len(got) != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"*", "+49;+43", "sip:x@h", "++"} {
		if got, err := setTo("SLUICE_SIP_TRUNK_PREFIXES", text).prefixesToCall(); err == nil || !strings.Contains(err.Error(), "SLUICE_SIP_TRUNK_PREFIXES") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func TestSettingsOfTelephony(t *testing.T) {
	t.Parallel()
	c := media.Config{Phone: phone.Settings{Available: true}}
	got, err := setTo("SLUICE_SIP_MEDIA_PORTS", "30000-30009").With(map[string]string{"SLUICE_SIP_PUBLIC_IP": "192.0.2.1"}).telephony(c)
	if err != nil || got.First != 30000 || got.Last != 30009 || got.PublicIP.String() != "192.0.2.1" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, set := range [][2]string{{"SLUICE_SIP_MEDIA_PORTS", "1000-2000"}, {"SLUICE_SIP_MEDIA_PORTS", "3000-2000"}, {"SLUICE_SIP_MEDIA_PORTS", "3000"},
		{"SLUICE_SIP_MEDIA_PORTS", "3000-70000"}, {"SLUICE_SIP_PUBLIC_IP", "sip.example"}} {
		if _, err := setTo(set[0], set[1]).telephony(c); err == nil || !strings.Contains(err.Error(), set[0]) {
			t.Errorf("%v: %v", set, err)
		}
	}
	if got, err := (setTo("SLUICE_SIP_ADDR", "off")).telephony(media.Config{}); got != nil || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestSettingsOfTransports(t *testing.T) {
	t.Parallel()
	p := process{Environment: setTo("SLUICE_TRANSPORT_INTERFACES", " eth0,,eth1 ").With(map[string]string{"SLUICE_TRANSPORT_ALLOW_CIDRS": "239.69.0.0/16", "SLUICE_NDI_BRIDGE": "/opt/ndi"})}
	s, err := p.transports()
	if err != nil || len(s.Network.Interfaces) != 2 || s.Network.Interfaces[1].Name != "eth1" || len(s.Network.Allow) != 1 || s.Bridges["ndi"] != "/opt/ndi" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, set := range [][2]string{{"SLUICE_TRANSPORT_ALLOW_CIDRS", "239.69.0.0"}, {"SLUICE_TRANSPORT_CLOCK", "ptp\r\na=x"}, {"SLUICE_NDI_BRIDGE", "ndi"}, {"SLUICE_OMT_BRIDGE", "./omt"}} {
		p := process{Environment: setTo(set[0], set[1])}
		if _, err := p.transports(); err == nil || !strings.Contains(err.Error(), set[0]) {
			t.Errorf("%v: %v", set, err)
		}
	}
}
