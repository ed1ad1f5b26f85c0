package meter

import (
	"encoding/binary"

	"sluice.dev/sluice/filters/host/wire"
)

// Route is what a route's number stands for. The zero Route is one that the
// edge knows nothing of.
type Route struct{ Name, Product string }

// maxNames bounds the routes that one worker ever numbers: later ones have
// number 0. Routes get new names rarely, and a worker starts with none.
const maxNames = 1 << 16

// Names numbers routes, so that counting needs no texts. The zero value has only
// number 0, the zero Route.
type Names struct {
	routes  []Route // routes[i] has number i+1
	numbers map[Route]uint32
}

// Number returns the number of r, the same each time.
func (n *Names) Number(r Route) uint32 {
	if r == (Route{}) {
		return 0
	}
	if i, ok := n.numbers[r]; ok {
		return i
	}
	if len(n.routes) == maxNames {
		return 0
	}
	if n.numbers == nil {
		n.numbers = map[Route]uint32{}
	}
	n.routes = append(n.routes, r)
	n.numbers[r] = uint32(len(n.routes))
	return uint32(len(n.routes))
}

// Route returns what a number stands for.
func (n *Names) Route(number uint32) Route {
	if number == 0 || int(number) > len(n.routes) {
		return Route{}
	}
	return n.routes[number-1]
}

// Append encodes the routes that a batch has counts of, behind dst: each calls use for
// the route of every one of them. It returns the place of each route in what it wrote,
// and how many counts there are.
func (n *Names) Append(dst []byte, each func(use func(route uint32))) (_ []byte, places map[uint32]uint64, counts uint64) {
	places = map[uint32]uint64{}
	var routes []uint32
	each(func(route uint32) {
		counts++
		if _, ok := places[route]; !ok {
			places[route] = uint64(len(routes))
			routes = append(routes, route)
		}
	})
	dst = binary.AppendUvarint(dst, uint64(len(routes)))
	for _, number := range routes {
		r := n.Route(number)
		dst = wire.AppendText(wire.AppendText(dst, r.Name, maxText), r.Product, maxText)
	}
	return dst, places, counts
}
