module pgqueue-gateway/compat-tests/go-records

go 1.26.0
