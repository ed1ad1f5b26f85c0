package app

import (
	"fmt"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/media/live/aes67"
	"sluice.dev/sluice/media/live/transports"
)

// transports are what the operator allows streams of the network that it is in. The
// media engine's process alone must have the interfaces.
func (p *process) transports() (s transports.Settings, err error) {
	for name := range strings.SplitSeq(p.Get("SLUICE_TRANSPORT_INTERFACES"), ",") {
		if name = strings.TrimSpace(name); name != "" {
			s.Network.Interfaces = append(s.Network.Interfaces, aes67.Interface{Name: name})
		}
	}
	if s.Network.Allow, err = p.prefixes("SLUICE_TRANSPORT_ALLOW_CIDRS"); err != nil {
		return s, err
	}
	if s.Clock = p.Get("SLUICE_TRANSPORT_CLOCK"); s.Clock != "" && !aes67.ValidClock(s.Clock) {
		return s, fmt.Errorf("SLUICE_TRANSPORT_CLOCK is %q: it is local, or such as ptp=IEEE1588-2008:00-1D-C1-FF-FE-12-34-56:0", s.Clock)
	}
	s.Bridges = map[string]string{}
	for transport, variable := range map[string]string{transports.NDI: "SLUICE_NDI_BRIDGE", transports.OMT: "SLUICE_OMT_BRIDGE"} {
		program := p.Get(variable)
		if program != "" && !filepath.IsAbs(program) {
			return s, fmt.Errorf("%s is %q: it is the absolute path of a program", variable, program)
		}
		s.Bridges[transport] = program
	}
	return s, nil
}
