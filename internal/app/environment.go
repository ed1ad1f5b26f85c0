package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/gateway/xds/resources"
	"sluice.dev/sluice/platform/process/telemetry"
	"sluice.dev/sluice/platform/process/telemetry/traces"
)

// Environment reads variables; nothing else in the program does.
type Environment struct {
	Lookup  func(string) (string, bool)
	process string           // whose variables may be read; empty: all
	now     func() time.Time // the database's time, in processes that have one; nil: the machine's
}

// ForProcess returns e for a command that runs until it is told to stop, which logs as
// the environment says. A process of a platform may read its own variables only.
func (e Environment) ForProcess(name string) (Environment, error) {
	logs, err := e.logs()
	if err != nil {
		return e, err
	}
	logs.Process = name
	slog.SetDefault(telemetry.NewLogger(os.Stderr, logs))
	if slices.Contains(processNames, name) {
		e.process = name
	}
	return e, nil
}

// Get returns the value of a variable, or its fallback when it is unset or empty.
func (e Environment) Get(name string) string {
	v, ok := lookUp(name)
	if !ok {
		panic("variable " + name + " is not in the table")
	}
	if e.process != "" && !v.readBy(e.process) {
		panic("process " + e.process + " reads " + name + ", which is not in its list")
	}
	if s, ok := e.Lookup(name); ok && s != "" {
		return s
	}
	return v.fallback
}

// Require returns a variable that must be set for a process.
func (e Environment) Require(name string) (string, error) {
	if s := e.Get(name); s != "" {
		return s, nil
	}
	return "", fmt.Errorf("%s is not set: `sluice up` sets it; a process on its own needs it", name)
}

// With returns e with some variables set.
func (e Environment) With(set map[string]string) Environment {
	lookup := e.Lookup
	e.Lookup = func(name string) (string, bool) {
		if v, ok := set[name]; ok {
			return v, true
		}
		return lookup(name)
	}
	return e
}

// number reads a variable that is a number in min..max.
func (e Environment) number(name string, min, max int) (int, error) {
	n, err := strconv.Atoi(e.Get(name))
	if err != nil || n < min || n > max {
		return 0, fmt.Errorf("%s is %q: expected a number from %d to %d", name, e.Get(name), min, max)
	}
	return n, nil
}

// durations reads variables that are times such as 30s, more than nothing.
func (e Environment) durations(names map[string]*time.Duration) error {
	var errs []error
	for name, into := range names {
		d, err := time.ParseDuration(e.Get(name))
		if err != nil || d <= 0 {
			errs = append(errs, fmt.Errorf("%s is %q: expected a time such as 30s", name, e.Get(name)))
		}
		*into = d
	}
	return errors.Join(errs...)
}

// url is the address in a variable without its last slash, or fallback.
func (e Environment) url(name, fallback string) string {
	return cmp.Or(strings.TrimRight(e.Get(name), "/"), fallback)
}

// publicURL is the gateway's address as clients see it.
func (e Environment) publicURL() string {
	return e.url("SLUICE_PUBLIC_URL", e.scheme()+"://"+e.Get("SLUICE_GATEWAY_ADDR"))
}

// runtimeURL is the chat runtime's address for users.
func (e Environment) runtimeURL() string {
	return e.url("SLUICE_RUNTIME_PUBLIC_URL", e.scheme()+"://"+e.Get("SLUICE_RUNTIME_ADDR"))
}

// mcpHosts are further names under which the endpoints of MCP may be called.
func (e Environment) mcpHosts() []string {
	return strings.FieldsFunc(e.Get("SLUICE_MCP_HOSTS"), func(r rune) bool { return r == ',' || r == ' ' })
}

// gatewayURL is the gateway's address as our own services see it. A certificate
// is for the public name, so with one that is what they call.
func (e Environment) gatewayURL() string {
	fallback := "http://" + e.Get("SLUICE_GATEWAY_ADDR")
	if e.scheme() == "https" {
		fallback = e.publicURL()
	}
	return e.url("SLUICE_GATEWAY_INTERNAL_URL", fallback)
}

// List reads a variable of comma-joined texts as they stand; none of them is empty.
func (e Environment) List(name string) []string {
	return strings.FieldsFunc(e.Get(name), func(r rune) bool { return r == ',' })
}

// First reads the first of such a variable; "" for none.
func (e Environment) First(name string) string {
	if all := e.List(name); len(all) > 0 {
		return all[0]
	}
	return ""
}

// prefixes reads a variable of comma-joined networks.
func (e Environment) prefixes(name string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for part := range strings.SplitSeq(e.Get(name), ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		p, err := netip.ParsePrefix(part)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not a network: expected something like 10.0.0.0/8", name, part)
		}
		out = append(out, p)
	}
	return out, nil
}

// logs is how the processes log.
func (e Environment) logs() (telemetry.LogConfig, error) {
	c, err := telemetry.ParseLog(e.Get("SLUICE_LOG_FORMAT"), e.Get("SLUICE_LOG_LEVEL"))
	if err != nil {
		return c, fmt.Errorf("SLUICE_LOG_FORMAT, SLUICE_LOG_LEVEL: %w", err)
	}
	return c, nil
}

// traces says where edges report traces to; nil: nowhere.
func (e Environment) traces() (*resources.Traces, error) {
	endpoint := strings.TrimRight(e.Get("SLUICE_OTLP_ENDPOINT"), "/")
	if endpoint == "" {
		return nil, nil
	}
	ratio, err := strconv.ParseFloat(e.Get("SLUICE_TRACE_RATIO"), 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		return nil, fmt.Errorf("SLUICE_TRACE_RATIO is %q: expected a number from 0 to 1", e.Get("SLUICE_TRACE_RATIO"))
	}
	return &resources.Traces{Endpoint: endpoint, Ratio: ratio}, nil
}

// tracer makes the spans of a process; nil when nothing is traced.
func (e Environment) tracer(ctx context.Context, process string) (*traces.Tracer, error) {
	t, err := e.traces()
	if err != nil || t == nil {
		return nil, err
	}
	tracer, err := traces.New(ctx, traces.Config{Endpoint: t.Endpoint, Ratio: t.Ratio, Process: process, Version: Version})
	if err != nil {
		return nil, fmt.Errorf("SLUICE_OTLP_ENDPOINT: %w", err)
	}
	return tracer, nil
}

// ContextsFile is the file in which commands keep contexts.
func (e Environment) ContextsFile() (string, error) {
	if name := e.Get("SLUICE_CONTEXTS"); name != "" {
		return name, nil
	}
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("there is no folder for contexts: set SLUICE_CONTEXTS (%w)", err)
	}
	return filepath.Join(folder, "sluice", "contexts.yaml"), nil
}

// VariablesOf are the variables that a process reads, each with its default and its
// meaning.
func VariablesOf(process string) (list [][3]string) {
	for _, v := range variables {
		if v.readBy(process) {
			list = append(list, [3]string{v.name, v.fallback, v.help})
		}
	}
	return list
}
