//! Why the control plane was not reached, in words for the log, for `enrol` and for the doctor.

const std = @import("std");

pub const Failure = enum {
    name_unknown,
    name_server_silent,
    nothing_listens,
    no_route,
    address_refused,
    not_reached,
    proxy_not_reached,
    proxy_silent,
    proxy_closed,
    proxy_not_http,
    proxy_wants_password,
    proxy_refuses,
    authorities_unreadable,
    certificate_unknown,
    certificate_expired,
    certificate_not_yet_valid,
    certificate_of_another,
    tls_silent,
    tls_failed,
    tls_malformed,
    silent,
    closed,
    not_http,
    too_large,

    pub fn ofHandshake(err: std.crypto.tls.Client.InitError) Failure {
        return switch (err) {
            error.CertificateExpired => .certificate_expired,
            error.CertificateNotYetValid => .certificate_not_yet_valid,
            error.CertificateHostMismatch => .certificate_of_another,
            error.TlsCertificateNotVerified,
            error.CertificateIssuerMismatch,
            error.CertificateSignatureInvalid,
            => .certificate_unknown,
            error.ReadFailed, error.WriteFailed, error.TlsConnectionTruncated => .closed,
            else => .tls_failed,
        };
    }

    /// Follows "The control plane at URL cannot be reached: ".
    pub fn sentence(failure: Failure) []const u8 {
        return switch (failure) {
            .name_unknown => "its name cannot be resolved",
            .name_server_silent => "the name server does not answer",
            .nothing_listens => "nothing listens there",
            .no_route => "there is no route to it",
            .address_refused => "its address is not one that this edge may connect to",
            .not_reached => "it does not accept a connection",
            .proxy_not_reached => "the proxy does not accept a connection",
            .proxy_silent => "the proxy does not answer",
            .proxy_closed => "the proxy closed the connection",
            .proxy_not_http => "the proxy does not speak HTTP",
            .proxy_wants_password => "the proxy requires a password",
            .proxy_refuses => "the proxy refuses to connect to it",
            .authorities_unreadable => "the certificates of authorities cannot be read",
            .certificate_unknown => "its certificate is not from an authority that is trusted here",
            .certificate_expired => "its certificate has expired",
            .certificate_not_yet_valid => "its certificate is not valid yet",
            .certificate_of_another => "its certificate is for another name",
            .tls_silent => "it does not answer the TLS handshake",
            .tls_failed => "TLS failed",
            .tls_malformed => "its TLS handshake cannot be read",
            .silent => "it does not answer in time",
            .closed => "it closed the connection",
            .not_http => "it does not speak HTTP",
            .too_large => "its answer is too large",
        };
    }

    pub fn remedy(failure: Failure) []const u8 {
        return switch (failure) {
            .name_unknown, .name_server_silent =>
            \\Check the URL and this machine's DNS (/etc/resolv.conf).
            ,
            .nothing_listens => "Start the control plane, or check the URL's port.",
            .no_route => "Check this machine's default route.",
            .address_refused => "Allow it with --import-from.",
            .not_reached,
            .silent,
            .tls_silent,
            => "Check the firewalls on the path: the edge dials out, nothing has to reach it.",
            .proxy_not_reached,
            .proxy_silent,
            .proxy_closed,
            .proxy_not_http,
            => "Check --proxy, or HTTPS_PROXY and NO_PROXY.",
            .proxy_wants_password => "Name it: --proxy http://USER:PASSWORD@HOST:PORT.",
            .proxy_refuses =>
            \\Let the proxy connect (CONNECT) to this host and port, or exclude the host in NO_PROXY.
            ,
            .authorities_unreadable => "Install ca-certificates, or check --ca-file.",
            .certificate_unknown =>
            \\Name the certificate of a private authority with --ca-file, or install ca-certificates.
            ,
            .certificate_expired,
            .certificate_not_yet_valid,
            => "Renew the certificate, or set this machine's clock (timedatectl set-ntp true).",
            .certificate_of_another =>
            \\Use the name that the certificate is for as the URL's host.
            ,
            .tls_failed, .tls_malformed =>
            \\Check that the URL's port speaks TLS, and which versions of it: the edge needs TLS 1.2 or 1.3.
            ,
            .closed, .not_http, .too_large =>
            \\Check the URL; if it is right, look at the control plane's log.
            ,
        };
    }
};

test "the reasons that people mix up have words of their own" {
    const Pair = struct { std.crypto.tls.Client.InitError, Failure };
    for ([_]Pair{
        .{ error.CertificateExpired, .certificate_expired },
        .{ error.TlsCertificateNotVerified, .certificate_unknown },
        .{ error.CertificateHostMismatch, .certificate_of_another },
        .{ error.TlsAlert, .tls_failed },
    }) |pair| try std.testing.expectEqual(pair[1], Failure.ofHandshake(pair[0]));
    for (std.enums.values(Failure)) |one| for (std.enums.values(Failure)) |other|
        if (one != other)
            try std.testing.expect(!std.mem.eql(u8, one.sentence(), other.sentence()));
}
