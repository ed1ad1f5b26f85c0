package usage

import (
	"errors"
	"io"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/limits/meter"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// Receiver takes parcels from edges. Whoever mounts it checks that it is an edge
// who sends them, as the key feed's Guard does.
type Receiver struct {
	Store Store
	// Respond writes errors; its zero value will do.
	Respond httpapi.Adapter
	// Log; nil: slog.Default.
	Log *slog.Logger

	metrics metrics
}

// metrics of a Receiver; the zero value counts nowhere.
type metrics struct{ parcels, requests *prometheus.CounterVec }

// NewReceiver returns r with its metrics registered, unless registry is nil.
func NewReceiver(r Receiver, registry prometheus.Registerer) *Receiver {
	if r.Log == nil {
		r.Log = slog.Default()
	}
	r.metrics = metrics{
		parcels: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_usage_parcels_total", Help: "Parcels of usage by edge and whether they were new.",
		}, []string{"edge", "result"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_usage_requests_total", Help: "Requests counted, by edge.",
		}, []string{"edge"}),
	}
	if registry != nil {
		registry.MustRegister(r.metrics.parcels, r.metrics.requests)
	}
	return &r
}

// ServeHTTP answers POST Path, whose body is a meter.Parcel: 204 once it is
// counted, the second time as the first. 400 says that it never will be.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.Respond.Handle(r.receive)(w, req)
}

// receive counts the parcel in the body. Marks of used quotas follow after that: a
// failure there is made good by Reconcile.
func (r *Receiver) receive(w http.ResponseWriter, req *http.Request) error {
	raw, err := io.ReadAll(http.MaxBytesReader(w, req.Body, meter.MaxParcel))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return apierror.Errorf(decision.TooLarge, "A parcel has at most %d bytes.", meter.MaxParcel)
	}
	if err != nil {
		return nil // the edge went away
	}
	parcel, batches, ok := meter.ParseParcel(raw)
	if !ok {
		return apierror.Errorf(decision.InvalidRequest, "The body is not a parcel of usage.")
	}
	taken, err := r.Store.Take(req.Context(), parcel, batches)
	if err != nil {
		r.metrics.parcels.WithLabelValues(parcel.Edge, "failed").Inc()
		return err
	}
	r.note(parcel.Edge, taken)
	if taken.New {
		if _, err := r.Store.Enforce(req.Context(), taken.Accounts); err != nil {
			r.Log.WarnContext(req.Context(), "quotas not judged", "cause", err)
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// note counts a parcel that was taken.
func (r *Receiver) note(edge string, t Taken) {
	if !t.New {
		r.metrics.parcels.WithLabelValues(edge, "repeated").Inc()
		return
	}
	r.metrics.parcels.WithLabelValues(edge, "new").Inc()
	r.metrics.requests.WithLabelValues(edge).Add(float64(t.Requests))
}
