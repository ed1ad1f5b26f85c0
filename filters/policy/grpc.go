package policy

import "strings"

// grpcMark ends the revision of a route whose product speaks gRPC. An edge of the
// release before takes it for a part of the method, by whose name it counts alone.
const grpcMark = "grpc"

// GRPCRevision is a revision, with its method if it has one, of a route whose product
// speaks gRPC.
func GRPCRevision(revision string) string {
	if !strings.Contains(revision, " ") {
		revision += " "
	}
	return revision + " " + grpcMark
}

// MayBeRPC reports whether a request of this route may be a call by gRPC: its product
// speaks that, or there is no route to anything.
func (r *Route) MayBeRPC() bool { return r.grpc }

// readMarks reads what stands behind the revision.
func (r *Route) readMarks() {
	_, behind, _ := strings.Cut(r.Revision, " ")
	method, mark, _ := strings.Cut(behind, " ")
	r.method, r.grpc = method, mark == grpcMark || r.Deny != ""
}
