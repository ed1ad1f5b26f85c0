// Command webhooks measures the webhook service: deliveries a second with the
// receiver included, the fan-out of one event to 10,000 subscriptions, and what
// hanging endpoints do to the others.
//
//	go run ./bench/webhooks [-deliveries 60000] [-rate 40] [-seconds 20] [throughput] [single] [fanout] [hanging]
//
// Everything runs on this machine: PostgreSQL with durable writes, one worker
// process (this one) and the receiver.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"time"
)

// options are the flags.
type options struct {
	deliveries, endpoints, rate, seconds int
}

func main() {
	var o options
	flag.IntVar(&o.deliveries, "deliveries", 60_000, "deliveries of the throughput row")
	flag.IntVar(&o.endpoints, "endpoints", 100, "endpoints of the throughput row")
	flag.IntVar(&o.rate, "rate", 40, "events a second of the hanging row, ten deliveries each")
	flag.IntVar(&o.seconds, "seconds", 20, "length of each half of the hanging row")
	profile := flag.String("cpuprofile", "", "write a CPU profile of this process here")
	flag.Parse()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			fmt.Fprintln(os.Stderr, "webhooks:", err)
			os.Exit(1)
		}
		_ = pprof.StartCPUProfile(f)
		defer pprof.StopCPUProfile()
	}
	rows := flag.Args()
	if len(rows) == 0 {
		rows = []string{"throughput", "single", "fanout", "hanging"}
	}
	for _, row := range rows {
		if err := measure(row, o); err != nil {
			fmt.Fprintln(os.Stderr, "webhooks:", err)
			os.Exit(1)
		}
	}
}

// measure runs one row on a database of its own.
func measure(row string, o options) error {
	f, ok := map[string]func(context.Context, *stack, *receiver, options) error{
		"throughput": throughput, "single": single, "fanout": fanout, "hanging": hanging,
	}[row]
	if !ok {
		return fmt.Errorf("no such row: %s", row)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "webhooks-bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r := newReceiver()
	defer func() { r.CloseClientConnections(); r.Close() }()
	s, err := start(ctx, dir+"/pg")
	if s != nil {
		defer func() { _ = s.stop(context.WithoutCancel(ctx)) }()
	}
	if err != nil {
		return err
	}
	return f(ctx, s, r, o)
}
