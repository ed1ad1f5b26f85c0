module sluice.dev/sluice/sdk/go

go 1.24.0
