package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"

	"sluice.dev/sluice/bench/hostile"
)

// orders tell the process of the hostile tenant what to do.
type orders struct {
	Gateway, Key        string
	Rate, Subscriptions int
	Without             []string
}

// tenant is the other tenant, in a process of its own that gives way to all others:
// its own work, elsewhere in truth, must not count as the platform's.
type tenant struct {
	Silent string // URL of its receiver that never answers

	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// startTenant returns when the tenant has made its schedules and subscriptions.
func startTenant(ctx context.Context, o orders) (*tenant, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	t := &tenant{cmd: exec.CommandContext(ctx, "nice", "-n", "19", program, "-tenant")}
	t.cmd.Stderr = os.Stderr
	out, err := t.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	t.out = json.NewDecoder(out)
	if t.in, err = t.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := t.cmd.Start(); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(t.in).Encode(o); err != nil {
		return nil, err
	}
	return t, t.out.Decode(&t.Silent)
}

// attack begins the attack.
func (t *tenant) attack() error { return json.NewEncoder(t.in).Encode("attack") }

// stop ends it and returns how its attempts were answered.
func (t *tenant) stop() (counts map[string]hostile.Count, err error) {
	if err := t.in.Close(); err != nil {
		return nil, err
	}
	if err := t.out.Decode(&counts); err != nil {
		return nil, err
	}
	return counts, t.cmd.Wait()
}

// beTenant is the tenant's process: it reads orders, says where its receiver is,
// attacks when told to, and ends with standard input.
func beTenant(ctx context.Context, in io.Reader, out io.Writer) error {
	silent := hostile.NewReceiver()
	defer silent.Close()
	said, heard := json.NewEncoder(out), json.NewDecoder(in)
	var o orders
	if err := heard.Decode(&o); err != nil {
		return err
	}
	t := &hostile.Tenant{Gateway: o.Gateway, Key: o.Key, Silent: silent.URL, Rate: o.Rate, Most: 512, Without: o.Without,
		Client: hostile.From("127.0.0.2", http.DefaultTransport.(*http.Transport))}
	if err := t.Prepare(ctx, 50, o.Subscriptions); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	if err := said.Encode(silent.URL); err != nil {
		return err
	}
	var word string
	if err := heard.Decode(&word); err != nil {
		return err
	}
	attack, end := context.WithCancel(ctx)
	defer end()
	go func() {
		_ = heard.Decode(&word) // returns at the end of the input
		end()
	}()
	return said.Encode(t.Run(attack))
}
