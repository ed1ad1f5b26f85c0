package app

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/xds/resources"
)

const profileVariable = "SLUICE_PROFILE"

// Profile is which of its own products a deployment has: one of config.Profiles.
func (e Environment) Profile() (string, error) {
	profile := e.Get(profileVariable)
	if !slices.Contains(config.Profiles, profile) {
		return "", fmt.Errorf("%s is %q: expected %s", profileVariable, profile, strings.Join(config.Profiles, " or "))
	}
	return profile, nil
}

// WithLocalProfile returns e, for a command, with the profile of the local stack when
// the environment has none.
func (e Environment) WithLocalProfile() Environment {
	if said, ok := e.Lookup(profileVariable); ok && said != "" {
		return e
	}
	local, err := ReadEnvFile(filepath.Join(e.Get("SLUICE_STATE_DIR"), "dev.env"))
	if err != nil || local[profileVariable] == "" {
		return e
	}
	return e.With(map[string]string{profileVariable: local[profileVariable]})
}

// hasAll reports whether a deployment has all products: media, chat, schedules and
// payments.
func (e Environment) hasAll() (bool, error) {
	profile, err := e.Profile()
	return profile == config.ProfilePlatform, err
}

// runtimeAddr is where edges listen for the chat runtime; "": nowhere.
func (e Environment) runtimeAddr() (string, error) {
	all, err := e.hasAll()
	if err != nil || !all {
		return "", err
	}
	return e.Get("SLUICE_RUNTIME_ADDR"), nil
}

// ownEvents are the groups of events of a control plane with the profile gateway.
var ownEvents = []string{"webhook", "test", "billing"}

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
