package app

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/xds/resources"
)

// Profile is which of its own products a deployment has: one of config.Profiles.
// Commands that say nothing else mean that of the local stack.
func (e Environment) Profile() (string, error) {
	const name = "SLUICE_PROFILE"
	profile := e.Get(name)
	if said, ok := e.Lookup(name); e.process == "" && (!ok || said == "") {
		if local, err := ReadEnvFile(filepath.Join(e.Get("SLUICE_STATE_DIR"), "dev.env")); err == nil && local[name] != "" {
			profile = local[name]
		}
	}
	if !slices.Contains(config.Profiles, profile) {
		return "", fmt.Errorf("%s is %q: expected %s", name, profile, strings.Join(config.Profiles, " or "))
	}
	return profile, nil
}

// hasAll reports whether a deployment has all products: media, chat, schedules and
// payments.
func (e Environment) hasAll() (bool, error) {
	profile, err := e.Profile()
	return profile == config.ProfilePlatform, err
}

// CheckDocument finds what is wrong with d, which Faults finds nothing wrong with,
// when it is compiled for edges: without a control plane, as this one would.
func (e Environment) CheckDocument(d config.Document) error {
	upstreams, err := e.upstreams()
	if err != nil {
		return err
	}
	local := []string{"127.0.0.1:1"}
	o := resources.Options{
		Addresses: map[string][]string{"api": local, "media": local, "runtime": local},
		Own:       []string{e.Get("SLUICE_GATEWAY_ADDR"), e.Get("SLUICE_RUNTIME_ADDR"), hostPort(e.publicURL())},
		Upstreams: upstreams,
	}
	p, err := d.Policy(1, "", config.ProvisionalNumbers(d))
	if err != nil {
		return err
	}
	if _, err := resources.Build(d, p, o); err != nil {
		return err
	}
	return o.CheckUpstreams(d)
}
