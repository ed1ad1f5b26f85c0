package main

import (
	"strconv"
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/limits/meter"
)

// Timing and bounds of what is sent: how long an answer may take, how many ticks
// after a failure the next try is, how much one parcel holds, and how much waits
// at most while the control plane cannot be reached.
const (
	meterTimeoutMillis = 5_000
	meterRetryTicks    = 10
	meterParcelBytes   = 256 << 10
	meterWaitingBytes  = 8 << 20
	meterParcelBatches = 1000
)

// usageSender takes the usage that workers hand over, and sends it to the control
// plane until that has it. Parcels are sent one at a time, and each stays as it
// is until it is settled: sent again, it has the same number and contents.
type usageSender struct {
	queue    uint32
	boot     string // of this program: a new one never repeats an old one's numbers
	sequence uint64 // of the parcel under way, or the last one
	parcel   []byte // nil: none under way
	batches  int    // of the parcel
	sending  bool
	retryIn  int // ticks until the parcel is sent again

	waiting [][]byte // batches for the parcels to come
	size    int      // of waiting, in bytes

	offeredAt int64 // second of the last offer
	settled   proxywasm.MetricCounter
	lost      proxywasm.MetricCounter
	failing   bool // the last parcel failed, and that was logged
}

// start opens the queue.
func (c *usageSender) start() error {
	var err error
	if c.queue, err = wasmhost.Usage.Register(); err != nil {
		return err
	}
	c.boot = strconv.FormatInt(time.Now().UnixNano(), 36)
	c.settled = proxywasm.DefineCounterMetric(meter.SettledMetric)
	c.lost = proxywasm.DefineCounterMetric("sluice_meter_requests_lost_total")
	return nil
}

// tick takes what workers have handed over, and sends it unless a parcel is
// under way.
func (c *usageSender) tick(cfg *config) {
	now := time.Now().Unix()
	if now != c.offeredAt {
		wasmhost.Usage.Offer(c.queue, now)
		c.offeredAt = now
	}
	c.collect()
	if c.parcel == nil && len(c.waiting) > 0 {
		c.pack(cfg)
	}
	if c.retryIn > 0 {
		c.retryIn--
	} else if c.parcel != nil && !c.sending {
		c.send(cfg)
	}
}

// collect empties the queue. What does not fit pushes out the oldest that waits.
func (c *usageSender) collect() {
	for {
		b, err := proxywasm.DequeueSharedQueue(c.queue)
		if err != nil || len(b) == 0 {
			break
		}
		c.waiting, c.size = append(c.waiting, b), c.size+len(b)
	}
	for c.size > meterWaitingBytes {
		c.drop(c.waiting[0])
		c.settled.Increment(1)
		c.size -= len(c.waiting[0])
		c.waiting = c.waiting[1:]
	}
}

// drop counts what is given up with a batch.
func (c *usageSender) drop(b []byte) {
	batch, _ := meter.Parse(b)
	n := uint64(0)
	for _, count := range batch.Counts {
		n += count.Requests
	}
	c.lost.Increment(n)
}

// pack makes the next parcel.
func (c *usageSender) pack(cfg *config) {
	n, size := 0, 0
	for n < len(c.waiting) && n < meterParcelBatches && (n == 0 || size+len(c.waiting[n]) <= meterParcelBytes) {
		size += len(c.waiting[n])
		n++
	}
	c.sequence++
	p := meter.Parcel{Edge: cfg.Edge, Boot: c.boot, Sequence: c.sequence, Batches: c.waiting[:n]}
	c.parcel, c.batches = p.Append(make([]byte, 0, size+16*n+256)), n
	c.waiting, c.size = append([][]byte(nil), c.waiting[n:]...), c.size-size
}

func (c *usageSender) send(cfg *config) {
	headers := cfg.headers("POST", edgeapi.UsagePath)
	headers = append(headers, [2]string{"content-type", "application/octet-stream"})
	_, err := proxywasm.DispatchHttpCall(cfg.Cluster, headers, c.parcel, nil, meterTimeoutMillis, c.receive)
	if err != nil {
		c.retryIn = meterRetryTicks
		c.fail("dispatch: " + err.Error())
		return
	}
	c.sending = true
}

// receive settles the parcel if the control plane has it, or says that it will
// never take it; on any other answer, or none, it is sent again.
func (c *usageSender) receive(headers, _, _ int) {
	c.sending = false
	switch status := answerStatus(headers); {
	case status >= 200 && status < 300:
		c.finishParcel()
		if c.failing {
			proxywasm.LogWarn("keysync: usage is taken again")
		}
		c.failing = false
	case status == 400 || status == 413:
		_, batches, _ := meter.ParseParcel(c.parcel)
		for _, b := range batches {
			for _, count := range b.Counts {
				c.lost.Increment(count.Requests)
			}
		}
		c.finishParcel()
		c.fail("refused with status " + strconv.Itoa(status) + " and given up")
	default:
		c.retryIn = meterRetryTicks
		c.fail("status " + strconv.Itoa(status))
	}
}

func (c *usageSender) finishParcel() {
	c.settled.Increment(uint64(c.batches))
	c.parcel, c.batches = nil, 0
}

func (c *usageSender) fail(why string) {
	if !c.failing {
		proxywasm.LogWarn("keysync: usage not taken: " + why + "; it waits here")
	}
	c.failing = true
}

// answerStatus is the status of an answer; 0 when none came.
func answerStatus(headers int) int {
	if headers == 0 {
		return 0
	}
	list, err := proxywasm.GetHttpCallResponseHeaders()
	if err != nil {
		return 0
	}
	for _, h := range list {
		if h[0] == ":status" {
			n, _ := strconv.Atoi(h[1])
			return n
		}
	}
	return 0
}
