//! Commands and responses of a TPM 2.0, as far as a device's key needs them (TCG, "Trusted Platform
//! Module Library", family 2.0: Part 2, Structures, and Part 3, Commands). Each command has one
//! form, so an emitter has few arguments; a parser accepts only what fits the command that was
//! sent. No state, no allocation.

pub const command = @import("command.zig");
pub const response = @import("response.zig");
pub const ResponseCode = @import("response_code.zig").ResponseCode;

/// A response is never larger; TPMs have at least this (TPM_PT_MAX_RESPONSE_SIZE is often 4096).
pub const response_size_max = 4096;
/// Uncompressed point of NIST P-256 (SEC 1): 4, x, y.
pub const public_key_size = 65;
/// r and s.
pub const signature_size = 64;
pub const digest_size = 32;

/// TPM_ST.
pub const Tag = enum(u16) {
    /// Only of responses: a TPM 1.2 gives it to a command that it does not know.
    rsp_command = 0x00c4,
    no_sessions = 0x8001,
    sessions = 0x8002,
    hashcheck = 0x8024,
    _,
};

/// TPM_ALG_ID.
pub const alg_sha256: u16 = 0x000b;
pub const alg_null: u16 = 0x0010;
pub const alg_ecdsa: u16 = 0x0018;
pub const alg_ecc: u16 = 0x0023;
/// TPM_ECC_CURVE.
pub const curve_p256: u16 = 0x0003;

/// TPM_HANDLE of permanent entities.
pub const Hierarchy = enum(u32) {
    owner = 0x4000_0001,
    null = 0x4000_0007,
};

/// TPM_CAP_TPM_PROPERTIES, and those of its properties that are read.
pub const cap_tpm_properties: u32 = 6;
pub const property_family: u32 = 0x100;
pub const property_manufacturer: u32 = 0x105;

/// TPMA_OBJECT of the device's key.
pub const Attributes = packed struct(u32) {
    reserved_0: u1 = 0,
    /// It never leaves this TPM.
    fixed_tpm: bool = true,
    st_clear: bool = false,
    reserved_3: u1 = 0,
    fixed_parent: bool = true,
    /// The TPM made its secret.
    sensitive_data_origin: bool = true,
    /// Its password, which is empty, suffices to use it.
    user_with_auth: bool = true,
    admin_with_policy: bool = false,
    reserved_8: u2 = 0,
    /// Wrong passwords, which it has none of, never lock it.
    no_da: bool = true,
    encrypted_duplication: bool = false,
    reserved_12: u4 = 0,
    /// It signs digests that the TPM has not computed.
    restricted: bool = false,
    decrypt: bool = false,
    sign: bool = true,
    reserved_19: u13 = 0,

    pub fn toInt(attributes: Attributes) u32 {
        return @bitCast(attributes);
    }
};

test {
    _ = command;
    _ = response;
    _ = ResponseCode;
    _ = @import("tpm_test.zig");
}
