// SPDX-License-Identifier: Apache-2.0

extension DeviceState {
    /// Reads the state from the fields of its file.
    /// - Throws: ``StoredFieldError``.
    package init(fields value: PropertyListValue?) throws(StoredFieldError) {
        guard let value else { throw .otherForm }
        let fields = try StoredFields(value)
        signedIn = try fields.fields("signedIn").map(SignedInAccount.init)
        folder = try StoredFields.need(fields.string("folder"), "folder")
        folders = try StoredFields.need(fields.fields("folders"), "folders").strings()
        lastFolder = try fields.integer("lastFolder")
    }
}

extension SignedInAccount {
    fileprivate init(_ fields: StoredFields) throws(StoredFieldError) {
        func string(_ name: ExactString) throws(StoredFieldError) -> String {
            try StoredFields.need(fields.string(name), name)
        }
        self.init(
            server: try string("server"), account: try string("account"),
            accountName: try string("accountName"), device: try string("device"),
            deviceName: try string("deviceName"), credential: try string("credential"),
            certificates: try fields.string("certificates"))
    }
}
