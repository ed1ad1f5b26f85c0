package main

import (
	"errors"
	"strings"

	"sluice.dev/sluice/e2e/harness"
)

// bed is a whole local stack in front of the model.
type bed struct {
	*harness.Stack
	subjects []*subject
}

// startStack runs `sluice up` in front of a model, in a folder of its own.
func startStack(model string) (*bed, error) {
	stack, err := harness.NewStack(map[string]string{"SLUICE_MODEL_UPSTREAM": model, "SLUICE_RUNTIME_STANDALONE": "1"})
	if err != nil {
		return nil, err
	}
	b := &bed{Stack: stack}
	if err := b.up(); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// up starts the stack, waits until it is ready, and finds its processes.
func (b *bed) up() error {
	if err := b.Up(); err != nil {
		return err
	}
	key := b.Dev["SLUICE_API_KEY"]
	runtime, err1 := harness.Below(b.PID(), "runtime", func(p harness.Proc) bool { return len(p.Args) > 1 && p.Args[1] == "runtime" })
	envoy, err2 := harness.Below(b.PID(), "envoy", func(p harness.Proc) bool { return strings.HasPrefix(p.Name, "envoy") })
	b.subjects = []*subject{
		{name: "runtime", base: "http://" + b.Env["SLUICE_RUNTIME_LISTEN"] + "/v1", key: key, model: "m", pids: []int{runtime.PID}},
		{name: "edge and runtime", base: "http://" + b.Env["SLUICE_RUNTIME_ADDR"] + "/v1", key: key, model: "m", pids: []int{runtime.PID, envoy.PID}},
	}
	return errors.Join(err1, err2)
}

// rss is the memory of a subject's processes, in bytes.
func (s *subject) rss() (sum int64) {
	for _, pid := range s.pids {
		now, _, _ := harness.Memory(pid) // 0 of one that has ended
		sum += now
	}
	return sum
}
