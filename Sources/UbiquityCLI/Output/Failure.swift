// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Ubiquity
import UbiquityCore
import UbiquityServer
import UbiquityWire

/// The reason a command failed: a sentence for people, a status for programs.
struct Failure: Error, Equatable {
    var status: Status
    var sentence: String

    init(_ status: Status, _ sentence: String) {
        self.status = status
        self.sentence = sentence
    }

    /// The numbers of `sysexits.h`.
    enum Status: Int32 {
        case no = 1
        case usage = 64
        case badInput = 65
        case noInput = 66
        case unavailable = 69
        case software = 70
        case system = 71
        case cannotCreate = 73
        case inputOutput = 74
        /// What the server has is not all that it should be.
        case incomplete = 76
        case noPermission = 77
    }
}

extension Failure {
    /// Nil for errors that the argument parser reports itself.
    init?(_ error: any Error) {
        switch error {
        case let failure as Failure: self = failure
        case is ExitCode, is CleanExit, is ValidationError: return nil
        case let error as UbiquityError: self.init(error)
        case let failure as LinkFailure: self.init(UbiquityError(failure))
        case is KeyringRefusal, is SealingError: self.init(.noPermission, "\(error)")
        case let error as ServerStartError: self.init(Status(error), error.description)
        case let error as BackupError: self.init(Status(error), error.description)
        case let error as CocoaError:
            self.init(Status(error), error.sentence(about: error.filePath ?? "the file"))
        case is AccountFileError, is KeyError, is LimitViolation, is PropertyListFileError,
            is StoreIdentifierError:
            self.init(.badInput, "\(error)")
        case is HomeError, is LocalStorageError, is StorageError, is SystemError:
            self.init(.inputOutput, "\(error)")
        case is AtomicFileError, is DatabaseCopyError:
            self.init(.cannotCreate, "\(error)")
        case is CancellationError: self.init(.system, "interrupted")
        default:
            // The argument parser's own errors are not public.
            if Parser.exitCode(for: error) != .failure { return nil }
            self.init(.software, "\(error)")
        }
    }

    /// A sentence for people about any error.
    static func sentence(of error: any Error) -> String {
        Failure(error)?.sentence ?? "\(error)"
    }

    init(_ error: UbiquityError) { self.init(Status(error.code), error.description) }

    /// - Throws: ``Failure`` if it is not a server's address. That is wrong use, found before
    ///   anything is sent.
    static func checkAddress(_ server: String) throws(Failure) {
        do { _ = try ServerAddress(server) } catch { throw Failure(.usage, error.detail) }
    }

    /// The same, also for plain HTTP to another machine without permission, and for invalid
    /// certificates.
    static func checkAddress(_ server: String, _ security: ConnectionSecurity) throws(Failure) {
        do { _ = try ServerAddress(server, security) } catch { throw Failure(.usage, error.detail) }
    }
}

/// Only for the argument parser's judgement of errors.
private struct Parser: ParsableArguments {}

extension Failure.Status {
    init(_ code: UbiquityError.Code) {
        self =
            switch code {
            case .notConfigured: .usage
            case .notSignedIn, .refused: .noPermission
            case .unreachable, .heldUp: .unavailable
            case .storage: .inputOutput
            case .notTaken: .incomplete
            case .invalid: .badInput
            }
    }

    init(_ error: ServerStartError) {
        self =
            switch error {
            case .portTaken, .addressUnusable, .folderInUse, .folderBusy, .noServer: .unavailable
            case .folderUnusable: .cannotCreate
            case .noServerData: .noInput
            case .notPermitted: .noPermission
            case .database(let problem): Self(problem)
            default: .inputOutput
            }
    }

    private init(_ problem: DatabaseProblem) {
        self =
            switch problem {
            case .noClientLibrary: .system
            case .addressUnreadable: .usage
            case .unreachable, .noConnectionLeft, .readOnly, .tooFewConnections: .unavailable
            case .passwordWrong, .notPermitted: .noPermission
            case .noDatabase, .empty: .noInput
            default: .inputOutput
            }
    }

    init(_ error: BackupError) {
        self =
            switch error {
            case .takesTooLong, .folderInUse: .unavailable
            case .noFile, .isFolder: .noInput
            case .notBackup: .badInput
            case .hasData, .noRoom, .notMade, .inUse: .cannotCreate
            case .databaseUnreadable: .inputOutput
            }
    }

    init(_ error: CocoaError) {
        self =
            switch error.code {
            case .fileNoSuchFile, .fileReadNoSuchFile: .noInput
            case .fileWriteNoPermission, .fileWriteFileExists, .fileWriteInvalidFileName:
                .cannotCreate
            case .propertyListReadCorrupt: .badInput
            default: .inputOutput
            }
    }
}
